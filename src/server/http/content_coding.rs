//! Chooses the content coding of an answer (RFC 9110 section 12.5.3). Pure: compresses no body.

use http::HeaderMap;
use http::header::ACCEPT_ENCODING;

use crate::views::Coding;

/// The smallest result first. Each body is compressed once, so the time for it does not count.
const PREFERENCE: [Coding; 3] = [Coding::Brotli, Coding::Zstd, Coding::Gzip];

/// The coding with the highest weight; among equals the one with the smallest result. Identity if
/// there is no header or no coding fits: a server may answer 406 then, but a readable answer helps
/// more.
///
/// Only codings that the client names are used: `*` allows any, but a client that sends it seldom
/// supports Zstandard.
pub(in crate::server) fn choose(headers: &HeaderMap) -> Coding {
    let mut lines = headers.get_all(ACCEPT_ENCODING).iter();
    let Some(first) = lines.next() else {
        return Coding::Identity;
    };
    if lines.next().is_none()
        && let Some(alone) = single_coding(first.as_bytes())
    {
        return alone;
    }
    let mut weights = [0_u16; PREFERENCE.len()];
    // Identity is acceptable unless refused (RFC 9110 section 12.5.3), but only as a last resort
    // unless it is named.
    let mut identity = 0_u16;
    for line in headers.get_all(ACCEPT_ENCODING) {
        let Ok(line) = line.to_str() else { continue };
        for element in line.split(',') {
            let Some((coding, weight)) = parse_weighted(element) else {
                continue;
            };
            let coding = if coding.eq_ignore_ascii_case("x-gzip") {
                "gzip"
            } else {
                coding
            };
            if coding.eq_ignore_ascii_case("identity") {
                identity = weight;
            } else if let Some(at) = PREFERENCE
                .iter()
                .position(|known| coding.eq_ignore_ascii_case(known.as_str()))
            {
                weights[at] = weight;
            }
        }
    }
    let mut best = (Coding::Identity, identity);
    // From the least preferred, so that among equal weights the most preferred wins.
    for (coding, weight) in PREFERENCE.iter().zip(weights).rev() {
        if weight > 0 && weight >= best.1 {
            best = (*coding, weight);
        }
    }
    best.0
}

/// The coding if the header names exactly one, without a weight.
fn single_coding(line: &[u8]) -> Option<Coding> {
    PREFERENCE
        .into_iter()
        .chain([Coding::Identity])
        .find(|coding| coding.as_str().as_bytes() == line)
}

/// A coding and its weight in thousandths; `None` if the element is malformed.
fn parse_weighted(element: &str) -> Option<(&str, u16)> {
    let (coding, parameter) = element
        .split_once(';')
        .map_or((element, None), |(coding, rest)| (coding, Some(rest)));
    let coding = coding.trim();
    if coding.is_empty() {
        return None;
    }
    let Some(parameter) = parameter else {
        return Some((coding, 1_000));
    };
    let (name, value) = parameter.split_once('=')?;
    if !name.trim().eq_ignore_ascii_case("q") {
        return None;
    }
    Some((coding, parse_qvalue(value.trim())?))
}

/// Parses a `qvalue`: `0` or `1` with up to three decimals, at most 1. In thousandths.
pub(in crate::server) fn parse_qvalue(text: &str) -> Option<u16> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let whole: u16 = match whole {
        "0" => 0,
        "1" => 1_000,
        _ => return None,
    };
    if decimals.len() > 3 || !decimals.bytes().all(|c| c.is_ascii_digit()) {
        return None;
    }
    let fraction: u16 = format!("{decimals:0<3}").parse().ok()?;
    Some(whole + fraction).filter(|sum| *sum <= 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(lines: &[&'static str]) -> Coding {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(ACCEPT_ENCODING, http::HeaderValue::from_static(line));
        }
        choose(&headers)
    }

    #[test]
    fn an_accept_encoding_that_is_missing_or_unknown_gives_identity() {
        for lines in [
            &[][..],
            &[""],
            &["deflate"],
            &["*"],
            &["identity;q=0, *;q=0"],
            &["gzip;q=0"],
            &["gzip;q=2"],
        ] {
            assert_eq!(chosen(lines), Coding::Identity, "{lines:?}");
        }
    }

    #[test]
    fn the_smallest_of_equals() {
        assert_eq!(chosen(&["gzip, deflate, br, zstd"]), Coding::Brotli);
        assert_eq!(chosen(&["gzip, zstd"]), Coding::Zstd);
        assert_eq!(chosen(&["gzip", "br"]), Coding::Brotli);
        assert_eq!(chosen(&["identity, gzip"]), Coding::Gzip);
    }

    #[test]
    fn one_alone() {
        for coding in [Coding::Identity, Coding::Gzip, Coding::Brotli, Coding::Zstd] {
            assert_eq!(chosen(&[coding.as_str()]), coding);
        }
        assert_eq!(chosen(&["gzip", "br;q=0.5"]), Coding::Gzip);
    }

    #[test]
    fn weights_decide() {
        assert_eq!(chosen(&["br;q=0.5, gzip;q=0.501"]), Coding::Gzip);
        assert_eq!(chosen(&["BR ; Q=0.1, X-GZIP; q=1.000"]), Coding::Gzip);
        assert_eq!(chosen(&["identity;q=1, gzip;q=0.9"]), Coding::Identity);
        assert_eq!(chosen(&["br;q=0, zstd;q=0.001"]), Coding::Zstd);
        assert_eq!(chosen(&["br;level=4, gzip;q=0.1"]), Coding::Gzip);
    }
}
