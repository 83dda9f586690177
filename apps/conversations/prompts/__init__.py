"""The prompt library: texts that people begin a message with, their own or the workspace's."""
