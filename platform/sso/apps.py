"""App configuration."""

from django.apps import AppConfig


class SsoConfig(AppConfig):
    name = "sso"
    default_auto_field = "django.db.models.BigAutoField"
    erasure = {  # what an erasure does to its columns: see erasure.rules
        "SsoConnection": "names: name issuer client_id sso_url; "
        "codes: protocol secret_encrypted certificates email_claim groups_claim",
        "SamlAnswer": "names: claims; codes: assertion_sha256 request_id token_sha256",
        "SsoDomain": "names: domain; codes: token",
        "GroupRole": "names: group; codes: role",
        "SsoIdentity": "names: subject",
        "SsoSignIn": "codes: token_sha256",
        "ScimToken": "names: name; codes: token_sha256",
        "ScimUser": "names: user_name user_key external_id email given_name family_name display_name",
        "ScimGroup": "names: display_name display_key external_id",
    }
    moves = {  # what an import does with their rows: see exports.moves
        "ScimUser": "stays: secret",
        "ScimGroup": "stays: secret",
        "ScimToken": "stays: secret",
        "SsoConnection": "stays: secret",
        "SsoSignIn": "stays: secret",
        "SsoIdentity": "stays: secret",
        "GroupRole": "stays: secret",
        "SsoDomain": "stays: secret",
    }

    def ready(self) -> None:
        from jobs.registry import on_sweep
        from sso.saml.services import answers_expire
        from sso.sign_ins import sign_in_made, sign_ins_end, sign_ins_expire
        from tenancy.entrances import sign_ins_looked_up_by
        from tenancy.losses import on_loss

        sign_ins_looked_up_by(sign_in_made)
        on_loss(sign_ins_end)
        on_sweep(sign_ins_expire, every_s=300)
        on_sweep(answers_expire, every_s=300)
