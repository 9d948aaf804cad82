//! The files that pages load, all of them in the binary. Third-party files are in `vendor/`, with
//! their licences and checksums.

use std::sync::LazyLock;

use axum::body::Body;
use axum::extract::Path;
use axum::response::Response;
use bytes::Bytes;
use callsheet_provide::conditional;
use http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, VARY};
use http::{HeaderMap, HeaderValue, StatusCode};
use xxhash_rust::xxh3::xxh3_64;

use crate::server::dashboard::security_headers::add_security_headers;
use crate::server::http::content_coding;
use crate::server::http::error::{Problem, excerpt};
use crate::views::Coding;

/// One file.
struct Asset {
    name: &'static str,
    kind: &'static str,
    text: &'static str,
}

const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

const ASSETS: &[Asset] = &[
    Asset {
        name: "style.css",
        kind: STYLE,
        text: include_str!("assets/style.css"),
    },
    Asset {
        name: "app.js",
        kind: SCRIPT,
        text: include_str!("assets/app.js"),
    },
    Asset {
        name: "icon.svg",
        kind: "image/svg+xml",
        text: include_str!("assets/icon.svg"),
    },
    Asset {
        name: "htmx.min.js",
        kind: SCRIPT,
        text: include_str!("vendor/htmx.min.js"),
    },
    Asset {
        name: "plots.js",
        kind: SCRIPT,
        text: include_str!("assets/plots.js"),
    },
    Asset {
        name: "uPlot.iife.min.js",
        kind: SCRIPT,
        text: include_str!("vendor/uPlot.iife.min.js"),
    },
    Asset {
        name: "uPlot.min.css",
        kind: STYLE,
        text: include_str!("vendor/uPlot.min.css"),
    },
    Asset {
        name: "htmx-ext-sse.min.js",
        kind: SCRIPT,
        text: include_str!("vendor/htmx-ext-sse.min.js"),
    },
];

/// A file in every coding. Made at the first request.
struct EncodedAsset {
    digest: String,
    bodies: Vec<(Coding, Bytes)>,
}

static CODED: LazyLock<Vec<EncodedAsset>> = LazyLock::new(|| {
    let coded = |asset: &Asset| {
        let plain = asset.text.as_bytes();
        let encode = |coding: Coding| Some((coding, Bytes::from(coding.encode(plain).ok()?)));
        EncodedAsset {
            digest: format!("{:016x}", xxh3_64(plain)),
            bodies: Coding::ALL.into_iter().filter_map(encode).collect(),
        }
    };
    ASSETS.iter().map(coded).collect()
});

/// The URL of a file. It contains a hash of the content, so that browsers may cache it for ever.
pub(super) fn href(name: &str) -> String {
    let digest = ASSETS
        .iter()
        .position(|asset| asset.name == name)
        .and_then(|at| CODED.get(at));
    format!(
        "/dashboard/assets/{name}?v={}",
        digest.map_or("", |coded| &coded.digest)
    )
}

/// `GET /dashboard/assets/{name}`.
pub(super) async fn serve(
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let found = ASSETS
        .iter()
        .zip(CODED.iter())
        .find(|(asset, _)| asset.name == name);
    let Some((asset, coded)) = found else {
        return Err(Problem::not_found(format!(
            "the dashboard has no file `{}`",
            excerpt(&name)
        )));
    };
    let wanted = content_coding::choose(&headers);
    let body = coded.bodies.iter().find(|(coding, _)| *coding == wanted);
    let (coding, body) = body.map_or(
        (Coding::Identity, Bytes::from_static(asset.text.as_bytes())),
        Clone::clone,
    );
    let etag = HeaderValue::try_from(format!("\"{}-{}\"", coded.digest, coding.as_str()));
    let etag = etag.map_err(|error| Problem::internal(&error))?;
    let known = conditional::is_known(&headers, &etag);
    let mut response = Response::new(if known {
        Body::empty()
    } else {
        Body::from(body)
    });
    if known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let fields = response.headers_mut();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static(asset.kind));
    fields.insert(
        CACHE_CONTROL,
        HeaderValue::from_static("public, max-age=31536000, immutable"),
    );
    fields.insert(VARY, HeaderValue::from_static("accept-encoding"));
    fields.insert(ETAG, etag);
    if coding != Coding::Identity {
        fields.insert(CONTENT_ENCODING, HeaderValue::from_static(coding.as_str()));
    }
    add_security_headers(fields);
    Ok(response)
}
