//! Plain text, headers, targets, digests.

use std::borrow::Cow;

use callbox_wire::redact::{Redactor, Rules};

use crate::{redactor, rules, shape, with_pointers};

#[test]
fn names_in_plain_text() {
    let redactor = redactor();
    for (text, expected) in [
        ("password=hunter2", "password=[key]"),
        (
            "DB_PASSWORD=hun ter;2,x\nNEXT=1",
            "DB_PASSWORD=[key]\nNEXT=1",
        ),
        ("export API_KEY='a b' # c", "export API_KEY='[key]' # c"),
        (
            "Authorization: Bearer abc.def\r\nHost: h",
            "Authorization: [key]\r\nHost: h",
        ),
        (
            "> Cookie: a=b; c=d\n> Host: h",
            "> Cookie: [key]\n> Host: h",
        ),
        (
            "curl -H 'Authorization: Basic dTpw' https://h",
            "curl -H 'Authorization: [key]' https://h",
        ),
        ("use token: abc to sign in", "use token: [key] to sign in"),
        (
            "use token: Bearer abc to sign in",
            "use token: [key] to sign in",
        ),
        ("your API key: abc", "your API key: [key]"),
        ("login(password=hunter2)", "login(password=[key])"),
        (
            "Server=h;Password=p;Database=d",
            "Server=h;Password=[key];Database=d",
        ),
        ("{'password': 'it\\'s'}", "{'password': '[key]'}"),
        (
            r#"{"password": "a\"b", "x": "#,
            r#"{"password": "[key]", "x": "#,
        ),
        (
            r#"say {\"password\":\"K5\"} now"#,
            r#"say {\"password\":\"[key]\"} now"#,
        ),
        (r#"{"secret": {"a": [1]}, "b""#, r#"{"secret": [key], "b""#),
        (r#"{"password": "never closed"#, r#"{"password": "[key]"#),
        (
            "https://h.test/cb?access_token=K&x=1",
            "https://h.test/cb?access_token=[key]&x=1",
        ),
        (
            "https://h.test/?next=%2Fcb%3Faccess_token%3DK%26x",
            "https://h.test/?next=%2Fcb%3Faccess_token%3D[key]%26x",
        ),
        ("secret := \"abc\"", "secret := \"[key]\""),
        ("'token' => 'abc'", "'token' => '[key]'"),
        ("a\\npassword=K\\nb", "a\\npassword=[key]\\nb"),
    ] {
        assert_eq!(shape(&redactor.text(text)), expected);
    }
    for plain in [
        "Enter your password:",
        "token_count: 5, max_tokens=10",
        "password: null",
        "if token == other",
        "token != x and secret <= y",
        "Token::new()",
        "password=${PASSWORD}",
        "password: ****",
        "tokens: 12",
        "The cookie was good; the secretary: left",
        "see https://h.test/token/x",
        "a: b, c = d",
    ] {
        assert!(
            matches!(redactor.text(plain), Cow::Borrowed(_)),
            "{plain}: {}",
            redactor.text(plain)
        );
    }
}

#[test]
fn flags_elements_and_schemes() {
    let redactor = redactor();
    for (text, expected) in [
        (
            "mysql --user app --password hunter2 crm",
            "mysql --user app --password [key] crm",
        ),
        (
            "run --api-key 'a b' --token=x",
            "run --api-key '[key]' --token=[key]",
        ),
        (
            "<user>u</user><password>hunter2</password>",
            "<user>u</user><password>[key]</password>",
        ),
        (
            "<ns:AccessToken type=\"x\">a b</ns:AccessToken>",
            "<ns:AccessToken type=\"x\">[key]</ns:AccessToken>",
        ),
        (
            "sent Bearer aB3dE6gH9jK2mN5pQ8 twice",
            "sent Bearer [cloud-key] twice",
        ),
        ("sent Basic dTpLNA== twice", "sent Basic [cloud-key] twice"),
        ("\\u003cAKIAIOSFODNN7EXAMPLE", "\\u003c[cloud-key]"),
        ("\\n4111111111111111\\n(555)0100123", "\\n[card]\\n[phone]"),
        ("\\tDE89370400440532013000", "\\t[iban]"),
    ] {
        assert_eq!(shape(&redactor.text(text)), expected);
    }
    for plain in [
        "run --token <token> --password",
        "git log --cookie -- x",
        "login <token> [options]",
        "<tokens>5</tokens>",
        "Bearer of bad news, Basic instructions",
        "Basic understanding",
    ] {
        assert_eq!(redactor.text(plain), plain);
    }
}

#[test]
fn headers_by_name() {
    let redactor = redactor();
    for (name, value, expected) in [
        ("Authorization", "Bearer abc.def", "Bearer [key]"),
        ("authorization", "abc", "[key]"),
        ("Proxy-Authorization", "Basic dTpw", "Basic [key]"),
        ("X-Api-Key", "abc", "[key]"),
        ("x-goog-api-key", "abc", "[key]"),
        ("X-My-Service-Token", "abc", "[key]"),
        (
            "Mcp-Session-Id",
            "0193a7c2-0000-7000-8000-000000000000",
            "[session]",
        ),
        ("dpop", "abc", "[key]"),
        ("mcp-param-password", "abc", "[key]"),
        ("mcp-param-query", "dana@northwind.example", "[email]"),
        (
            "mcp-param-query",
            "=?base64?ZGFuYUBub3J0aHdpbmQuZXhhbXBsZQ==?=",
            "[key]",
        ),
        (
            "mcp-param-query",
            "=?base64?5pCc57Si?=",
            "=?base64?5pCc57Si?=",
        ),
        ("mcp-name", "https://u:p@h.test/", "https://[url]@h.test/"),
        (
            "referer",
            "https://h.test/?token=abc",
            "https://h.test/?token=[key]",
        ),
        (
            "location",
            "/cb?access_token=abc&x=1",
            "/cb?access_token=[key]&x=1",
        ),
        (
            "baggage",
            "user=dana%40northwind.example,session=7",
            "user=[email],session=7",
        ),
        (
            "accept",
            "application/json, text/event-stream",
            "application/json, text/event-stream",
        ),
        ("x-request-id", "password=abc", "password=abc"),
        (
            "www-authenticate",
            "Bearer error=\"invalid_token\", scope=\"a b\"",
            "Bearer error=\"invalid_token\", scope=\"a b\"",
        ),
        ("authorization", "", ""),
        ("set-cookie", "", ""),
        ("set-cookie", "a=; Path=/", "a=; Path=/"),
    ] {
        assert_eq!(
            shape(&redactor.header(name, value)),
            expected,
            "{name}: {value}"
        );
    }
    // An operator's pointer may name the argument that a header copies.
    let pointers = with_pointers(&[("crm", "/note")]);
    assert_eq!(shape(&pointers.header("Mcp-Param-Note", "x")), "[pointer]");
    // Credentials go even when no key names are configured.
    let bare = Redactor::new(Rules::default(), &[7; 32]).unwrap();
    assert_eq!(
        shape(&bare.header("authorization", "Bearer x")),
        "Bearer [key]"
    );
    assert_eq!(shape(&bare.header("cookie", "s=x")), "s=[key]");
}

#[test]
fn targets() {
    let redactor = redactor();
    for (target, expected) in [
        ("/mcp", "/mcp"),
        (
            "/message?sessionId=0193a7c2",
            "/message?sessionId=[session]",
        ),
        ("/m?session_id=1&x", "/m?session_id=[session]&x"),
        ("/u/dana%40northwind.example/x?q=a+b", "/u/[email]/x?q=a+b"),
        (
            "/p?card=4111%201111%201111%201111&q=1",
            "/p?card=[card]&q=1",
        ),
        ("/p?c=4111+1111+1111+1111", "/p?c=[card]"),
        (
            "/p?cfg=%7B%22password%22%3A%22K%22%7D",
            "/p?cfg=%7B%22password%22%3A%22[key]%22%7D",
        ),
        (
            "/p?url=https%3A%2F%2Fu%3AK4%40h.test%2F",
            "/p?url=https%3A%2F%2F[url]%40h.test%2F",
        ),
        ("/x#access_token=K&b=1", "/x#access_token=[key]&b=1"),
        ("/x?token=&b", "/x?token=&b"),
        ("/%zz?%=%", "/%zz?%=%"),
        ("*", "*"),
        ("", ""),
    ] {
        assert_eq!(shape(&redactor.target(target)), expected);
    }
}

#[test]
fn digests_depend_on_key_domain_and_value() {
    let (one, other) = (redactor(), Redactor::new(rules(), &[8; 32]).unwrap());
    let digest = one.digest("principal", b"x");
    assert_eq!(digest, redactor().digest("principal", b"x"));
    assert_ne!(digest, one.digest("principal", b"y"));
    assert_ne!(digest, one.digest("session", b"x"));
    assert_ne!(digest, other.digest("principal", b"x"));
    assert_ne!(one.digest("ab", b"c"), one.digest("a", b"bc"));
    let text = "mail dana@northwind.example";
    assert_ne!(one.text(text), other.text(text));
    // One value, one set of digits, whatever found it.
    let digits = |text: &str| {
        text.rsplit_once(':')
            .map(|(_, tail)| tail.get(..8).unwrap().to_owned())
    };
    assert_eq!(
        digits(&one.text("dana@northwind.example")),
        digits(&one.text("password=\"dana@northwind.example\""))
    );
}

#[test]
fn nothing_of_the_key_is_shown() {
    let shown = format!("{:?}", redactor());
    assert!(
        shown.starts_with("Redactor { detectors: [Pem, Jwt") && !shown.contains('7'),
        "{shown}"
    );
}
