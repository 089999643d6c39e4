//! Puts a request into the form of the connection it goes out on.
//!
//! The caller gives the origin form with a `Host`; only here is it known which version the connection speaks. A request
//! that comes back unsent from a connection of one version may go out on one of the other.

use http::header::{CONNECTION, CONTENT_LENGTH, HOST, TE, TRANSFER_ENCODING};
use http::uri::{Authority, Parts, PathAndQuery, Scheme};
use http::{HeaderValue, Request, Uri, Version};
use http_body::Body;

fn target(uri: &Uri) -> PathAndQuery {
    uri.path_and_query()
        .cloned()
        .unwrap_or_else(|| PathAndQuery::from_static("/"))
}

/// HTTP/1.1: origin form, `Host`, and framing that says that there is a body when there is one.
pub(super) fn http1<B: Body>(request: &mut Request<B>) {
    if let Some(authority) = request.uri().authority() {
        if let Ok(host) = HeaderValue::from_str(authority.as_str()) {
            request.headers_mut().insert(HOST, host);
        }
        *request.uri_mut() = Uri::from(target(request.uri()));
    }
    *request.version_mut() = Version::HTTP_11;
    let unframed = !request.body().is_end_stream()
        && !request.headers().contains_key(CONTENT_LENGTH)
        && !request.headers().contains_key(TRANSFER_ENCODING);
    if unframed {
        // hyper would leave the body of a GET out when nothing says that there is one.
        request
            .headers_mut()
            .insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    }
    if request.headers().contains_key(TE) {
        // RFC 9110 10.1.4: whoever sends TE names it in Connection.
        request
            .headers_mut()
            .insert(CONNECTION, HeaderValue::from_static("te"));
    }
}

/// HTTP/2: scheme and authority in the target, none of the fields that only HTTP/1 has.
pub(super) fn http2<B>(request: &mut Request<B>, https: bool, otherwise: &str) {
    let host = request.headers_mut().remove(HOST);
    request.headers_mut().remove(CONNECTION);
    request.headers_mut().remove(TRANSFER_ENCODING);
    *request.version_mut() = Version::HTTP_2;
    if request.uri().authority().is_some() {
        return;
    }
    let mut parts = Parts::default();
    parts.scheme = Some(if https { Scheme::HTTPS } else { Scheme::HTTP });
    parts.authority = host
        .and_then(|host| Authority::try_from(host.as_bytes()).ok())
        .or_else(|| Authority::try_from(otherwise).ok());
    parts.path_and_query = Some(target(request.uri()));
    if let Ok(uri) = Uri::from_parts(parts) {
        *request.uri_mut() = uri;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails loudly")]

    use bytes::Bytes;
    use http_body_util::{Empty, Full};

    use super::*;

    #[test]
    fn there_and_back_is_the_same() {
        let mut request = Request::post("/a?b")
            .header("host", "h:1")
            .body(Empty::<Bytes>::new())
            .unwrap();
        http2(&mut request, true, "other");
        assert_eq!(request.uri(), "https://h:1/a?b");
        assert!(!request.headers().contains_key(HOST));
        http1(&mut request);
        assert_eq!(
            (request.uri().to_string(), request.version()),
            ("/a?b".to_owned(), Version::HTTP_11)
        );
        assert_eq!(request.headers().get(HOST).unwrap(), "h:1");
        assert_eq!(request.headers().len(), 1);
    }

    #[test]
    fn a_body_is_announced_to_http1() {
        let mut request = Request::get("/").body(Full::new(Bytes::from("x"))).unwrap();
        http1(&mut request);
        assert_eq!(request.headers().get(TRANSFER_ENCODING).unwrap(), "chunked");
        http2(&mut request, false, "h");
        assert_eq!(
            (request.uri().to_string(), request.headers().len()),
            ("http://h/".to_owned(), 0)
        );
    }
}
