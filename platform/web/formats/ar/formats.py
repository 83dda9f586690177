"""Arabic; ``web.formats.en.formats`` says what each name is for."""

DAY = "j M Y"
DAY_TIME = "j M Y، H:i"
DAY_SECOND = "j M Y، H:i:s"
LONG_DAY = "j F Y"
LONG_DAY_TIME = "j F Y، H:i"
NEAR_DAY = "j M"
NEAR_DAY_TIME = "j M، H:i"
NEAR_DAY_SECOND = "j M، H:i:s"
NEAR_LONG_DAY_TIME = "j F، H:i"
CLOCK = "H:i"
CLOCK_SECOND = "H:i:s"
MONTH = "F"
MONTH_YEAR = "F Y"
# With the digits that pages have: 1,234.5 (Unicode's for Arabic in Latin digits).
DECIMAL_SEPARATOR = "."
THOUSAND_SEPARATOR = ","
NUMBER_GROUPING = 3
DATE_FORMAT = DAY
TIME_FORMAT = CLOCK
DATETIME_FORMAT = DAY_TIME
SHORT_DATE_FORMAT = DAY
SHORT_DATETIME_FORMAT = DAY_TIME
