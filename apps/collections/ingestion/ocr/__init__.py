"""Text recognition (OCR): pictures of pages become text whose words know where they stand."""
