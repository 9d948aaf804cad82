//! Who may decide about calls. Whoever reaches the daemon may call; with `calls.approval_token` only who shows that token (RFC 6750
//! section 2.1) may say yes or no to a call that waits, and may change a preference so that a tool asks for less approval. A change that
//! asks for more is everybody's.
//!
//! Fails closed: a token that is missing, wrong or sent twice is refused before the call is looked at. Compared in constant time, never
//! logged. Never tells who a person is: all who know the token are one.

use http::HeaderMap;
use http::header::AUTHORIZATION;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::Shared;
use super::error::Problem;
use crate::model::{Approval, SettingsPatch};

const NEXT: &str = "the command line takes it from its configuration or from `CALLSHEET_CALLS__APPROVAL_TOKEN`, the dashboard on its page \
                    Calls, and other clients send it as `Authorization: Bearer TOKEN`";

/// Refuses who may not decide: 401.
pub(super) fn check(shared: &Shared, headers: &HeaderMap) -> Result<(), Problem> {
    let Some(token) = shared.calls.approval_token() else { return Ok(()) };
    match shown(headers) {
        None => Err(missing()),
        Some(shown) if same(&shown, token.expose().as_bytes()) => Ok(()),
        Some(_) => {
            let detail =
                format!("this is not the token of `calls.approval_token`, which deciding about calls needs; {NEXT}");
            Err(Problem::unauthorized(detail, "Bearer realm=\"callsheet\", error=\"invalid_token\""))
        }
    }
}

/// Refuses who may not make this change of preferences: 401 where it may lift the need for a yes.
pub(super) fn check_change(shared: &Shared, headers: &HeaderMap, patch: &SettingsPatch) -> Result<(), Problem> {
    match patch.approval {
        None | Some(Some(Approval::Require)) => Ok(()),
        Some(None | Some(Approval::Skip)) => check(shared, headers),
    }
}

/// 401: nothing was shown.
pub(super) fn missing() -> Problem {
    let detail = format!(
        "deciding about calls, and asking for less approval, needs the token of `calls.approval_token`; {NEXT}"
    );
    Problem::unauthorized(detail, "Bearer realm=\"callsheet\"")
}

/// What was shown; something that is nobody's token where it is not shown as it should be.
fn shown(headers: &HeaderMap) -> Option<Vec<u8>> {
    let mut lines = headers.get_all(AUTHORIZATION).iter();
    let line = lines.next()?;
    let (scheme, token) = line.as_bytes().split_at_checked("Bearer ".len()).unwrap_or_default();
    let proper = lines.next().is_none() && scheme.eq_ignore_ascii_case(b"Bearer ");
    Some(if proper { token.trim_ascii().to_vec() } else { Vec::new() })
}

/// Digests have one length, so the time tells nothing of that of the token either.
fn same(shown: &[u8], token: &[u8]) -> bool {
    Sha256::digest(shown).ct_eq(&Sha256::digest(token)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: &[&str]) -> Option<Vec<u8>> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(AUTHORIZATION, line.parse().unwrap());
        }
        shown(&headers)
    }

    #[test]
    fn only_one_bearer_token_is_one() {
        assert_eq!(of(&[]), None);
        for line in ["Bearer hush", "bearer hush", "BEARER  hush "] {
            assert_eq!(of(&[line]).unwrap(), b"hush", "{line}");
        }
        for lines in [&["Basic hush"][..], &["hush"], &["Bearer"], &["Bearer "], &["Bearer hush", "Bearer hush"]] {
            assert_eq!(of(lines).unwrap(), b"", "{lines:?}");
        }
    }

    #[test]
    fn equal_is_equal_and_nothing_else() {
        assert!(same(b"hush", b"hush"));
        for other in [&b""[..], b"hus", b"hushh", b"Hush"] {
            assert!(!same(other, b"hush"));
        }
    }
}
