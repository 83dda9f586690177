"""In the place of allauth's pages for WebAuthn, under its names, which its other pages link to."""

from __future__ import annotations

from django.urls import path

from web.passkeys import views

urlpatterns = [
    path("", views.overview, name="mfa_list_webauthn"),
    path("add/", views.add, name="mfa_add_webauthn"),
    path("login/", views.sign_in, name="mfa_login_webauthn"),
    path("reauthenticate/", views.again, name="mfa_reauthenticate_webauthn"),
    path("keys/<int:pk>/edit/", views.rename, name="mfa_edit_webauthn"),
    path("keys/<int:pk>/remove/", views.remove, name="mfa_remove_webauthn"),
    path("<str:purpose>/challenge/", views.challenge, name="passkey_challenge"),
]
