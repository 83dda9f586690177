"""What people are told while they look elsewhere: in the portal's bell, by their browser, by mail."""
