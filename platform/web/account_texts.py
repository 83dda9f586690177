"""The texts of allauth that our pages and mails show, marked so that our catalogs have them.

allauth has translations of its own. They change between two forms of address within a page, and call things by other
words than ours do. English is in ``platform/locale/en``.
"""

from __future__ import annotations

from django.utils.translation import gettext_noop, ngettext_lazy

TEXTS = (
    gettext_noop("This account is currently inactive."),
    gettext_noop("You cannot remove your primary email address."),
    gettext_noop("This email address is already associated with this account."),
    gettext_noop("The email address and/or password you specified are not correct."),
    gettext_noop("A user is already registered with this email address."),
    gettext_noop("Please type your current password."),
    gettext_noop("Incorrect code."),
    gettext_noop("Incorrect password."),
    gettext_noop("Invalid or expired key."),
    gettext_noop("Invalid login."),
    gettext_noop("The password reset token was invalid."),
    gettext_noop("You cannot add more than %d email addresses."),
    gettext_noop("Too many failed login attempts. Try again later."),
    gettext_noop("The email address is not assigned to any user account."),
    gettext_noop("Your primary email address must be verified."),
    gettext_noop("Please select only one."),
    gettext_noop("The new value must be different from the current one."),
    gettext_noop("Be patient, you are sending too many requests."),
    gettext_noop("Use your password"),
    gettext_noop("Use authenticator app or code"),
    gettext_noop("Use a security key"),
    gettext_noop("Email"),
    gettext_noop("Email address"),
    gettext_noop("You must type the same password each time."),
    gettext_noop("Password"),
    gettext_noop("Remember Me"),
    gettext_noop("Login"),
    gettext_noop("Forgot your password?"),
    gettext_noop("Email (again)"),
    gettext_noop("Email address confirmation"),
    gettext_noop("Email (optional)"),
    gettext_noop("You must type the same email each time."),
    gettext_noop("Password (again)"),
    gettext_noop("Current Password"),
    gettext_noop("New Password"),
    gettext_noop("New Password (again)"),
    gettext_noop("Code"),
    gettext_noop("You cannot add an email address to an account protected by two-factor authentication."),
    gettext_noop("You cannot deactivate two-factor authentication."),
    gettext_noop("You cannot generate recovery codes without having two-factor authentication enabled."),
    gettext_noop("You cannot activate two-factor authentication until you have verified your email address."),
    gettext_noop("Master key"),
    gettext_noop("Backup key"),
    gettext_noop("Key nr. {number}"),
    gettext_noop("Authenticator code"),
    gettext_noop("Passwordless"),
    gettext_noop(
        "Enabling passwordless operation allows you to sign in using just this key, but imposes additional requirements such as biometrics or PIN protection."
    ),
    gettext_noop("Key"),
    gettext_noop("Cancel"),
    gettext_noop("Account Inactive"),
    gettext_noop("This account is inactive."),
    gettext_noop("Confirm"),
    gettext_noop("Confirm Access"),
    gettext_noop("Please reauthenticate to safeguard your account."),
    gettext_noop("Alternative options"),
    gettext_noop("Password Reset"),
    gettext_noop("Email Addresses"),
    gettext_noop("The following email addresses are associated with your account:"),
    gettext_noop("Verified"),
    gettext_noop("Unverified"),
    gettext_noop("Primary"),
    gettext_noop("Make Primary"),
    gettext_noop("Re-send Verification"),
    gettext_noop("Remove"),
    gettext_noop("Add Email Address"),
    gettext_noop("Add Email"),
    gettext_noop("Do you really want to remove the selected email address?"),
    gettext_noop(
        "You are receiving this email because you or someone else tried to signup for an\naccount using email address:\n\n%(email)s\n\nHowever, an account using that email address already exists.  In case you have\nforgotten about this, please use the password forgotten procedure to recover\nyour account:\n\n%(password_reset_url)s"
    ),
    gettext_noop("Account Already Exists"),
    gettext_noop("Hello from %(site_name)s!"),
    gettext_noop("Thank you for using %(site_name)s!\n%(site_domain)s"),
    gettext_noop("You are receiving this mail because the following change was made to your account:"),
    gettext_noop(
        "If you do not recognize this change then please take proper security precautions immediately. The change to your account originates from:\n\n- IP address: %(ip)s\n- Browser: %(user_agent)s\n- Date: %(timestamp)s"
    ),
    gettext_noop("Your email has been confirmed."),
    gettext_noop("Email Confirmation"),
    gettext_noop(
        "You're receiving this email because user %(user_display)s has given your email address to register an account on %(site_domain)s."
    ),
    gettext_noop(
        "Your email verification code is listed below. Please enter it in your open browser window."
    ),
    gettext_noop("To confirm this is correct, go to %(activate_url)s"),
    gettext_noop("Please Confirm Your Email Address"),
    gettext_noop("Email address %(deleted_email)s has been removed from your account."),
    gettext_noop("Email Removed"),
    gettext_noop("This mail can be safely ignored if you did not initiate this action."),
    gettext_noop("Your password has been changed."),
    gettext_noop("Password Changed"),
    gettext_noop(
        "You're receiving this email because you or someone else has requested a password reset for your user account.\nIt can be safely ignored if you did not request a password reset. Click the link below to reset your password."
    ),
    gettext_noop("Password Reset Email"),
    gettext_noop("Your password has been reset."),
    gettext_noop("Your password has been set."),
    gettext_noop("Password Set"),
    gettext_noop(
        "You are receiving this email because you, or someone else, tried to access an account with email %(email)s. However, we do not have any record of such an account in our database."
    ),
    gettext_noop("If it was you, you can sign up for an account using the link below."),
    gettext_noop("Unknown Account"),
    gettext_noop("Confirm Email Address"),
    gettext_noop(
        'Please confirm that <a href="mailto:%(email)s">%(email)s</a> is an email address for user %(user_display)s.'
    ),
    gettext_noop("Unable to confirm %(email)s because it is already confirmed by a different account."),
    gettext_noop(
        'This email confirmation link expired or is invalid. Please <a href="%(email_url)s">issue a new email confirmation request</a>.'
    ),
    gettext_noop("Sign Out"),
    gettext_noop("Are you sure you want to sign out?"),
    gettext_noop("You cannot remove your primary email address (%(email)s)."),
    gettext_noop("Confirmation email sent to %(email)s."),
    gettext_noop("You have confirmed %(email)s."),
    gettext_noop("Removed email address %(email)s."),
    gettext_noop("Successfully signed in as %(name)s."),
    gettext_noop("You have signed out."),
    gettext_noop("Password successfully changed."),
    gettext_noop("Password successfully set."),
    gettext_noop("Primary email address set."),
    gettext_noop("Change Password"),
    gettext_noop("Forgot Password?"),
    gettext_noop(
        "We have sent you an email. If you have not received it please check your spam folder. Otherwise contact us if you do not receive it in a few minutes."
    ),
    gettext_noop("Bad Token"),
    gettext_noop(
        'The password reset link was invalid, possibly because it has already been used.  Please request a <a href="%(passwd_reset_url)s">new password reset</a>.'
    ),
    gettext_noop("Your password is now changed."),
    gettext_noop("Set Password"),
    gettext_noop("Enter your password:"),
    gettext_noop("Note"),
    gettext_noop("You are already logged in as %(user_display)s."),
    gettext_noop("Warning:"),
    gettext_noop(
        "You currently do not have any email address set up. You should really add an email address so you can receive notifications, reset your password, etc."
    ),
    gettext_noop("Verify Your Email Address"),
    gettext_noop(
        "We have sent an email to you for verification. Follow the link provided to finalize the signup process. If you do not see the verification email in your main inbox, check your spam folder. Please contact us if you do not receive the verification email within a few minutes."
    ),
    gettext_noop(
        "This part of the site requires us to verify that\nyou are who you claim to be. For this purpose, we require that you\nverify ownership of your email address. "
    ),
    gettext_noop(
        "We have sent an email to you for\nverification. Please click on the link inside that email. If you do not see the verification email in your main inbox, check your spam folder. Otherwise\ncontact us if you do not receive it within a few minutes."
    ),
    gettext_noop(
        '<strong>Note:</strong> you can still <a href="%(email_url)s">change your email address</a>.'
    ),
    gettext_noop("A new set of Two-Factor Authentication recovery codes has been generated."),
    gettext_noop("New Recovery Codes Generated"),
    gettext_noop("Authenticator app activated."),
    gettext_noop("Authenticator App Activated"),
    gettext_noop("Authenticator app deactivated."),
    gettext_noop("Authenticator App Deactivated"),
    gettext_noop("A new security key has been added."),
    gettext_noop("Security Key Added"),
    gettext_noop("A security key has been removed."),
    gettext_noop("Security Key Removed"),
    gettext_noop("Authenticator App"),
    gettext_noop("Deactivate"),
    gettext_noop("Activate"),
    gettext_noop("Security Keys"),
    gettext_noop("No security keys have been added."),
    gettext_noop("Add"),
    gettext_noop("Recovery Codes"),
    gettext_noop("Generate"),
    gettext_noop("A new set of recovery codes has been generated."),
    gettext_noop("Save them  in a secure location now — they won't be shown again."),
    gettext_noop("Security key added."),
    gettext_noop("Security key removed."),
    gettext_noop("Enter an authenticator code:"),
    gettext_noop("You are about to generate a new set of recovery codes for your account."),
    gettext_noop("This action will invalidate your existing codes."),
    gettext_noop("Are you sure?"),
    gettext_noop("Unused codes"),
    gettext_noop("Download codes"),
    gettext_noop("Generate new codes"),
    gettext_noop("I have saved my recovery codes"),
    gettext_noop("Activate Authenticator App"),
    gettext_noop(
        "To protect your account with two-factor authentication, scan the QR code below with your authenticator app. Then, input the verification code generated by the app below."
    ),
    gettext_noop("Authenticator secret"),
    gettext_noop("You can store this secret and use it to reinstall your authenticator app at a later time."),
    gettext_noop("Deactivate Authenticator App"),
    gettext_noop("You are about to deactivate authenticator app based authentication. Are you sure?"),
    gettext_noop("Add Security Key"),
    gettext_noop("Remove Security Key"),
    gettext_noop("Are you sure you want to remove this security key?"),
    gettext_noop("Usage"),
    gettext_noop("Passkey"),
    gettext_noop("Security key"),
    gettext_noop("This key does not indicate whether it is a passkey."),
    gettext_noop("Unspecified"),
    gettext_noop("Added on %(created_at)s"),
    gettext_noop("Last used %(last_used)s"),
    gettext_noop("Edit"),
    gettext_noop("Edit Security Key"),
    gettext_noop("Save"),
    gettext_noop("This functionality requires JavaScript."),
)
PLURALS = (
    ngettext_lazy(
        "There is %(unused_count)s out of %(total_count)s recovery codes available.",
        "There are %(unused_count)s out of %(total_count)s recovery codes available.",
    ),
)
