"""Spanish; ``web.formats.en.formats`` says what each name is for."""

DAY = "j b Y"
DAY_TIME = "j b Y, H:i"
DAY_SECOND = "j b Y, H:i:s"
LONG_DAY = r"j \d\e F \d\e Y"
LONG_DAY_TIME = r"j \d\e F \d\e Y, H:i"
NEAR_DAY = "j b"
NEAR_DAY_TIME = "j b, H:i"
NEAR_DAY_SECOND = "j b, H:i:s"
NEAR_LONG_DAY_TIME = r"j \d\e F, H:i"
CLOCK = "H:i"
CLOCK_SECOND = "H:i:s"
MONTH = "F"
MONTH_YEAR = r"F \d\e Y"
DATE_FORMAT = DAY
TIME_FORMAT = CLOCK
DATETIME_FORMAT = DAY_TIME
SHORT_DATE_FORMAT = DAY
SHORT_DATETIME_FORMAT = DAY_TIME
