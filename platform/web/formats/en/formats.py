"""English: every name that ``|date`` takes, and what it writes. DAY is a day; LONG with the month's whole name; NEAR without the year."""

DAY = "j M Y"
DAY_TIME = "j M Y, H:i"
DAY_SECOND = "j M Y, H:i:s"
LONG_DAY = "j F Y"
LONG_DAY_TIME = "j F Y, H:i"
NEAR_DAY = "j M"
NEAR_DAY_TIME = "j M, H:i"
NEAR_DAY_SECOND = "j M, H:i:s"
NEAR_LONG_DAY_TIME = "j F, H:i"
CLOCK = "H:i"
CLOCK_SECOND = "H:i:s"
MONTH = "F"
MONTH_YEAR = "F Y"
# What Django itself writes, as in the admin: as above.
DATE_FORMAT = DAY
TIME_FORMAT = CLOCK
DATETIME_FORMAT = DAY_TIME
SHORT_DATE_FORMAT = DAY
SHORT_DATETIME_FORMAT = DAY_TIME
