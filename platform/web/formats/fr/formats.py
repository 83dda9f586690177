"""French; ``web.formats.en.formats`` says what each name is for."""

DAY = "j N Y"
DAY_TIME = "j N Y, H:i"
DAY_SECOND = "j N Y, H:i:s"
LONG_DAY = "j F Y"
LONG_DAY_TIME = "j F Y, H:i"
NEAR_DAY = "j N"
NEAR_DAY_TIME = "j N, H:i"
NEAR_DAY_SECOND = "j N, H:i:s"
NEAR_LONG_DAY_TIME = "j F, H:i"
CLOCK = "H:i"
CLOCK_SECOND = "H:i:s"
MONTH = "F"
MONTH_YEAR = "F Y"
DATE_FORMAT = DAY
TIME_FORMAT = CLOCK
DATETIME_FORMAT = DAY_TIME
SHORT_DATE_FORMAT = DAY
SHORT_DATETIME_FORMAT = DAY_TIME
