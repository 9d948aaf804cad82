//! `auth` of an HTTP tool: how its requests prove who sends them.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use http::HeaderName;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use url::Url;

use super::document_members::{DocumentError, DocumentMembers};
use super::reserved_headers::is_reserved;
use super::signature::Signature;
use super::template::{Placeholder, TextTemplate, text_bytes};

/// How the requests of a tool prove who sends them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolAuth {
    /// A header with a value of its own: `apiKey` in a header, or `bearer`.
    Header {
        /// The header.
        name: HeaderName,
        /// What stands before the value: `Bearer `, or nothing.
        scheme: &'static str,
        /// The value.
        value: TextTemplate,
    },
    /// `apiKey` as a parameter of the query.
    Query {
        /// The parameter.
        name: String,
        /// The value.
        value: TextTemplate,
    },
    /// `basic`: the value is `user:password`.
    Basic(TextTemplate),
    /// `hmac`: each request is signed with a secret that is not sent.
    Hmac(Box<Signature>),
    /// `oauth2`: a client of an authorization server, which gets its tokens without a person
    /// (RFC 6749 section 4.4).
    OAuth {
        /// Where tokens are requested.
        token_url: Url,
        /// The id of the client.
        client_id: String,
        /// The name of the secret of the client in `[bundles.secrets]`.
        client_secret: Option<String>,
        /// The scopes.
        scopes: Vec<String>,
    },
}

impl ToolAuth {
    /// Reads it.
    pub(super) fn read(members: DocumentMembers<'_>) -> Result<Self, DocumentError> {
        match members.required_text("type")? {
            "apiKey" => {
                members.refuse_others(&["type", "in", "name", "valueTemplate"])?;
                let name = members.required_text("name")?;
                let value = value(members)?;
                match members.text("in")?.unwrap_or("header") {
                    "header" => {
                        let name = HeaderName::try_from(name).ok();
                        // The content type decides how the values in a body are escaped.
                        let name = name.filter(|name| !is_reserved(name) && *name != CONTENT_TYPE);
                        let name = name.ok_or_else(|| {
                            members.wrong("name", "is no header that a tool may set")
                        })?;
                        Ok(Self::Header {
                            name,
                            scheme: "",
                            value,
                        })
                    }
                    "query" => Ok(Self::Query {
                        name: name.to_owned(),
                        value,
                    }),
                    _ => Err(members.wrong("in", "is neither `header` nor `query`")),
                }
            }
            "bearer" => {
                members.refuse_others(&["type", "in", "name", "valueTemplate"])?;
                Ok(Self::Header {
                    name: AUTHORIZATION,
                    scheme: "Bearer ",
                    value: value(members)?,
                })
            }
            "basic" => {
                members.refuse_others(&["type", "in", "name", "valueTemplate"])?;
                value(members).map(Self::Basic)
            }
            "hmac" => Ok(Self::Hmac(Box::new(Signature::read(members)?))),
            "oauth2" => Self::read_oauth(members),
            _ => Err(members.wrong(
                "type",
                "is not `apiKey`, `bearer`, `basic`, `hmac` or `oauth2`",
            )),
        }
    }

    fn read_oauth(members: DocumentMembers<'_>) -> Result<Self, DocumentError> {
        members.refuse_others(&["type", "tokenUrl", "clientId", "clientSecret", "scopes"])?;
        let token_url = Url::parse(members.required_text("tokenUrl")?).ok();
        let token_url = token_url
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.username().is_empty());
        let secret = members.text("clientSecret")?.map(|text| {
            let template = TextTemplate::parse(text).ok();
            let name = template
                .as_ref()
                .and_then(TextTemplate::only_place)
                .map(|place| place.name().to_owned());
            name.ok_or_else(|| {
                members.wrong(
                    "clientSecret",
                    "is not one placeholder for a secret, as `${NAME}`",
                )
            })
        });
        let scopes = members.list("scopes")?.iter().map(|scope| {
            scope
                .as_str()
                .map(str::to_owned)
                .ok_or_else(|| members.wrong("scopes", "is not a list of texts"))
        });
        Ok(Self::OAuth {
            token_url: token_url
                .ok_or_else(|| members.wrong("tokenUrl", "is no address of http or https"))?,
            client_id: members.required_text("clientId")?.to_owned(),
            client_secret: secret.transpose()?,
            scopes: scopes.collect::<Result<_, _>>()?,
        })
    }

    /// The bytes of memory that it takes, estimated from above.
    pub(super) fn held_bytes(&self) -> usize {
        match self {
            Self::Header { value, .. } | Self::Basic(value) => value.held_bytes(),
            Self::Query { name, value } => text_bytes(name) + value.held_bytes(),
            Self::Hmac(signature) => signature.held_bytes(),
            Self::OAuth {
                token_url,
                client_id,
                client_secret,
                scopes,
            } => {
                let texts = [client_id].into_iter().chain(client_secret).chain(scopes);
                text_bytes(token_url.as_str()) + texts.map(|text| text_bytes(text)).sum::<usize>()
            }
        }
    }

    /// Its placeholders.
    pub(super) fn places(&self) -> Vec<&Placeholder> {
        match self {
            Self::Header { value, .. } | Self::Query { value, .. } | Self::Basic(value) => {
                value.places().collect()
            }
            Self::Hmac(signature) => signature.places().collect(),
            Self::OAuth { .. } => Vec::new(),
        }
    }
}

fn value(members: DocumentMembers<'_>) -> Result<TextTemplate, DocumentError> {
    let template = TextTemplate::parse(members.required_text("valueTemplate")?);
    template.map_err(|error| members.wrong("valueTemplate", format!("cannot be read: {error}")))
}

/// The value of `Authorization` for a name and a password (RFC 7617).
pub(super) fn basic(pair: &str) -> String {
    format!("Basic {}", BASE64_STANDARD.encode(pair))
}
