//! Scopes (RFC 6749 section 3.3) that servers and the configuration name.

/// The most bytes of all scopes together.
const MAX_SCOPES: usize = 4 * 1024;

/// Those that are scopes, each once, as many as fit.
pub(super) fn usable(all: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut left = MAX_SCOPES;
    let mut kept: Vec<String> = Vec::new();
    for scope in all {
        let is_scope = scope
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\');
        if is_scope && !scope.is_empty() && scope.len() < left && !kept.contains(&scope) {
            left -= scope.len() + 1;
            kept.push(scope);
        }
    }
    kept
}
