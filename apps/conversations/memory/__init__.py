"""What a person has models keep in mind: their own notes in a workspace, the switch over them, and the tool that proposes one."""
