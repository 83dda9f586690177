from django.apps import AppConfig


class JobTestsConfig(AppConfig):
    name = "tests.jobs"
    label = "job_tests"
