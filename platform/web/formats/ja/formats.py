"""Japanese; ``web.formats.en.formats`` says what each name is for."""

DAY = "Y年n月j日"
DAY_TIME = "Y年n月j日 H:i"
DAY_SECOND = "Y年n月j日 H:i:s"
LONG_DAY = "Y年n月j日"
LONG_DAY_TIME = "Y年n月j日 H:i"
NEAR_DAY = "n月j日"
NEAR_DAY_TIME = "n月j日 H:i"
NEAR_DAY_SECOND = "n月j日 H:i:s"
NEAR_LONG_DAY_TIME = "n月j日 H:i"
CLOCK = "H:i"
CLOCK_SECOND = "H:i:s"
MONTH = "n月"
MONTH_YEAR = "Y年n月"
NUMBER_GROUPING = 3
DATE_FORMAT = DAY
TIME_FORMAT = CLOCK
DATETIME_FORMAT = DAY_TIME
SHORT_DATE_FORMAT = DAY
SHORT_DATETIME_FORMAT = DAY_TIME
