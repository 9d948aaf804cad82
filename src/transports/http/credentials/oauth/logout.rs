//! The end of a login by a person: it is forgotten, and its authorization server is requested to
//! revoke its tokens (RFC 7009). That is tried once, within a limit of time, and never keeps a
//! logout from succeeding.

use std::sync::Arc;
use std::time::Duration;

use super::error::{LoginError, LoginProblem};
use super::login::{ForgottenLogin, LoginTokens};
use super::metadata::shown;
use super::status::{Logout, Revocation};
use super::stored::StoredLogin;
use super::token_request;

/// How long the server may take for all tokens.
const LIMIT: Duration = Duration::from_secs(5);

/// Forgets a login, and has its tokens revoked. It goes on when its caller does not wait any more.
///
/// Fails with [`LoginError::NotStored`] when the login may be back after a restart.
pub(super) async fn logout(tokens: Arc<LoginTokens>) -> Result<Logout, LoginError> {
    let tasks = tokens.parts.tasks.clone();
    let work = async move {
        let ForgottenLogin {
            login,
            was_pending,
            is_saved,
        } = tokens.forget().await;
        let revocation = match &login {
            Some(login) => revoke(&tokens, login).await,
            None => Revocation::NotNeeded,
        };
        if !is_saved {
            let why = "the login is forgotten until the daemon starts anew, for it could not be deleted from the store";
            let next = format!("run `callsheet logout {}` again", tokens.name);
            return Err(LoginError::NotStored(LoginProblem::new(
                format!("{why}; the log says why"),
                next,
            )));
        }
        Ok(Logout {
            was_logged_in: login.is_some() || was_pending,
            revocation,
        })
    };
    tasks.run_to_completion(work).await
}

/// Has the tokens of this login revoked, if there are any.
async fn revoke(tokens: &LoginTokens, login: &StoredLogin) -> Revocation {
    if login.tokens.is_none() {
        return Revocation::NotNeeded;
    }
    let issuer = shown(&login.issuer);
    let Some(endpoint) = &login.revocation_endpoint else {
        return Revocation::NotRevoked(format!(
            "the authorization server {issuer} offers no revocation"
        ));
    };
    let late = || Err(format!("it did not answer within {} s", LIMIT.as_secs()));
    let answered = tokio::time::timeout(LIMIT, request(tokens, login, endpoint)).await;
    match answered.unwrap_or_else(|_| late()) {
        Ok(()) => Revocation::Revoked,
        Err(why) => Revocation::NotRevoked(format!("the authorization server {issuer}: {why}")),
    }
}

/// One request for each token. That which renews comes first: with it most servers revoke the
/// others too (RFC 7009 section 2.1).
async fn request(tokens: &LoginTokens, login: &StoredLogin, endpoint: &str) -> Result<(), String> {
    let Some(given) = &login.tokens else {
        return Ok(());
    };
    let refresh = given
        .refresh
        .as_deref()
        .map(|token| ("refresh_token", token));
    let server = tokens.upstream(endpoint).await?;
    for (kind, token) in refresh
        .into_iter()
        .chain([("access_token", given.access.as_str())])
    {
        let mut form = vec![
            ("token", token.to_owned()),
            ("token_type_hint", kind.to_owned()),
        ];
        let header = tokens
            .prove(&login.client, &mut form)
            .await
            .map_err(|error| error.to_string())?;
        let answer = token_request::post(&server, header, &form).await?;
        let status = answer.head.status;
        if !status.is_success() {
            let code = token_request::error_code(&answer.body)
                .map(|code| format!(" ({code})"))
                .unwrap_or_default();
            return Err(format!(
                "it answered {status}{code} for the {}",
                kind.replace('_', " ")
            ));
        }
    }
    Ok(())
}
