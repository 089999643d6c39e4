//! One table per detector: what it must find, alone and in a sentence, and what it must leave alone.

use callbox_wire::redact::Detector;

use crate::{only, shape};

/// Asserts that exactly `secret` goes, in several surroundings; and that nothing goes in `plain`.
fn table(detector: Detector, kind: &str, secrets: &[&str], plain: &[&str]) {
    let redactor = only(detector);
    assert!(
        secrets.len() >= 8 && plain.len() >= 8,
        "{detector:?}: at least 8 each way"
    );
    for secret in secrets {
        for (left, right) in [
            ("", ""),
            ("see ", " there"),
            ("(", ")"),
            ("\"", "\", "),
            ("a\n", "\nb"),
            ("x=", "; y"),
            ("é ", "."),
        ] {
            let text = format!("{left}{secret}{right}");
            let expected = format!("{left}[{kind}]{right}");
            assert_eq!(
                shape(&redactor.text(&text)),
                expected,
                "{detector:?} in {text:?}"
            );
        }
    }
    for text in plain {
        for (left, right) in [("", ""), ("see ", " there"), ("\"", "\"")] {
            let text = format!("{left}{text}{right}");
            assert_eq!(
                redactor.text(&text),
                text,
                "{detector:?} must not find anything"
            );
        }
    }
}

#[test]
fn cards() {
    table(
        Detector::Card,
        "card",
        &[
            "4111 1111 1111 1111",
            "4111-1111-1111-1111",
            "4111111111111111",
            "5555 5555 5555 4444",
            "2223003122003222",
            "3782 822463 10005",
            "378282246310005",
            "6011 1111 1111 1117",
            "3530-1113-3330-0000",
            "3056 930902 5904",
            "4222222222222",
            "6205500000000000004",
            "4111\u{a0}1111\u{a0}1111\u{a0}1111",
        ],
        &[
            "4111 1111 1111 1112",
            "4111 111111 111111",
            "4111-1111 1111-1111",
            "1234567890123456",
            "0000 0000 0000 0000",
            "id4111111111111111",
            "4111111111111111abc",
            "order-4111111111111111",
            "0.4111111111111111",
            "4111111111111111.5",
            "12345678-4111-1111-1111-111111111111",
            "1764547199123456",
            "1764547199123456789",
            "9007199254740991",
            "4111",
        ],
    );
}

#[test]
fn emails() {
    table(
        Detector::Email,
        "email",
        &[
            "dana@northwind.example",
            "dana.kim+crm@mail.northwind.example",
            "D_K-1@x.io",
            "dana%40northwind.example",
            "dana@xn--bcher-kva.example",
            "dana@bücher.example",
            "данa@пример.рф",
            "1@2.co",
            "o_o@a-b.co.uk",
        ],
        &[
            "@modelcontextprotocol/sdk",
            "lodash@4.17.21",
            "icon@2x.png",
            "git@github.com:owner/repository.git",
            "user@localhost",
            "@dana",
            "a @ b.example",
            "dana@",
            "root@10.0.0.1",
            "x@y.z",
        ],
    );
}

#[test]
fn phones() {
    table(
        Detector::Phone,
        "phone",
        &[
            "(555)0100123",
            "(555) 010-0123",
            "+14155550123",
            "+1 415 555 0123",
            "+1 (415) 555-0123",
            "+44 20 7946 0958",
            "+49-30-123456",
            "+33.1.23.45.67.89",
            "415-555-0123",
            "415.555.0123",
            "1-415-555-0123",
            "(020) 7946 0958",
            "0044 20 7946 0958",
        ],
        &[
            "5550100123",
            "4155550123",
            "2026-11-30",
            "2026-11-30T23:59:59.123456+0100",
            "1764547199123",
            "10.0.0.12",
            "192.168.100.200",
            "3.14159265358979",
            "(2024) 2025 2026",
            "12 345 678",
            "555-0123",
            "415-555-01234",
            "a415-555-0123",
            "1,234,567,890",
            "978-3-16-148410-0",
            "+5 -3",
            "-74.0060",
        ],
    );
}

#[test]
fn ibans() {
    table(
        Detector::Iban,
        "iban",
        &[
            "DE89370400440532013000",
            "DE89 3704 0044 0532 0130 00",
            "GB82 WEST 1234 5698 7654 32",
            "FR14 2004 1010 0505 0001 3M02 606",
            "NL91ABNA0417164300",
            "BE68 5390 0754 7034",
            "NO93 8601 1117 947",
            "de89370400440532013000",
            "CH93-0076-2011-6238-5295-7",
            "MT84MALT011000012345MTLCAST001S",
        ],
        &[
            "DE89370400440532013001",
            "DE8937040044053201300",
            "DE893704004405320130000",
            "XX89370400440532013000",
            "GB82WEST12345698765433",
            "xDE89370400440532013000",
            "DE89",
            "deadbeef00112233445566",
            "BE68539007547035",
            "de305d54-75b4-431b-adb2-eb6b9e546014",
        ],
    );
}

#[test]
fn social_security_numbers() {
    table(
        Detector::Ssn,
        "ssn",
        &[
            "123-45-6789",
            "078-05-1120",
            "219-09-9999",
            "001-01-0001",
            "899-99-9999",
            "123 45 6789",
            "667-12-3456",
            "123\u{2011}45\u{2011}6789",
        ],
        &[
            "123456789",
            "000-12-3456",
            "666-12-3456",
            "912-34-5678",
            "123-00-4567",
            "123-45-0000",
            "1123-45-6789",
            "123-45-67890",
            "123-45-6789-01",
            "a123-45-6789",
            "2026-11-30",
        ],
    );
}

const JWT: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U";

#[test]
fn json_web_tokens() {
    table(
        Detector::Jwt,
        "jwt",
        &[
            JWT,
            "eyJhbGciOiJub25lIn0.eyJzdWIiOiJkYW5hIn0",
            "eyJhbGciOiJFUzI1NiJ9.eyJhIjoxfQ.AAAA",
            "eyJ0eXAiOiJKV1QiLCJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJ4In0.c2ln-_",
            "eyJhbGciOiJSU0EtT0FFUCIsImVuYyI6IkEyNTZHQ00ifQ.OKOa-wDH.48V1_ALb.5eym8.XFBoMYUZ",
            "eyJhbGciOiJkaXIiLCJlbmMiOiJBMTI4R0NNIn0..48V1_ALb6US04U3b.5eym8TW_c8SuK0ltJ3rpYIz.XFBoMYUZodetZ",
            "eyJhbGciOiJQUzI1NiIsImtpZCI6IjEifQ.eyJhIjoiYiJ9.x-y",
            "eyJhbGciOiJIUzI1NiIsInppcCI6IkRFRiJ9.fVBBa8Mw.AbCd",
        ],
        &[
            "eyJvZmZzZXQiOjEwfQ==",
            "eyJvZmZzZXQiOjEwfQ",
            "eyJ.eyJ.x",
            "xeyJhbGciOiJub25lIn0.eyJzdWIiOiJkYW5hIn0",
            "eyJvZmZzZXQiOjEwfQ.next.page",
            "EYJHBGCIOIJUB25LIN0.EYJZDWIIOIJKYW5HIN0",
            "hey Jude. Hey Joe",
            "eyJhbGciOiJub25lIn0",
            "eyJhbGciOiJub25lIn0 .eyJzdWIiOiJkYW5hIn0",
        ],
    );
}

#[test]
fn pem_blocks() {
    const BODY: &str = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7";
    let block = |label: &str, newline: &str| {
        format!(
            "-----BEGIN {label}-----{newline}{BODY}{newline}{BODY}{newline}-----END {label}-----"
        )
    };
    let secrets = [
        block("PRIVATE KEY", "\n"),
        block("RSA PRIVATE KEY", "\r\n"),
        block("ENCRYPTED PRIVATE KEY", "\n"),
        block("OPENSSH PRIVATE KEY", "\\n"),
        block("CERTIFICATE", "\n"),
        block("EC PRIVATE KEY", " "),
        block("PGP PRIVATE KEY BLOCK", "\n"),
        format!(
            "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES,00\n\n{BODY}\n-----END RSA PRIVATE KEY-----"
        ),
        format!(
            "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\n{BODY}\n---- END SSH2 ENCRYPTED PRIVATE KEY ----"
        ),
    ];
    table(
        Detector::Pem,
        "pem",
        &secrets.each_ref().map(String::as_str),
        &[
            "-----",
            "----------------------------------------",
            "the file begins with -----BEGIN CERTIFICATE----- as you know",
            "--BEGIN PRIVATE KEY--",
            "-----BEGIN lower case-----",
            "BEGIN PRIVATE KEY",
            "-----END PRIVATE KEY-----",
            "| --- | ----- |",
            "-----BEGIN PRIVATE KEY",
        ],
    );
    let broken_off = format!("key: -----BEGIN PRIVATE KEY-----\n{BODY}\n{BODY}");
    assert_eq!(shape(&only(Detector::Pem).text(&broken_off)), "key: [pem]");
    let two = format!("{}\nand\n{}", secrets[0], secrets[4]);
    assert_eq!(shape(&only(Detector::Pem).text(&two)), "[pem]\nand\n[pem]");
}

/// Keys are put together here, so that no scanner of repositories takes them for real ones.
#[test]
fn cloud_keys() {
    let alphanumeric = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hJ6kL9nP2rS5uV8xY1zA4cD7fG0iJ3";
    let hex = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    let take = |prefix: &str, body: &str, n: usize| format!("{prefix}{}", body.get(..n).unwrap());
    let secrets = [
        take("AKIA", "IOSFODNN7EXAMPLE", 16),
        take("ASIA", "IOSFODNN7EXAMPLE", 16),
        take("AIza", alphanumeric, 35),
        take("GOCSPX-", alphanumeric, 28),
        take("ya29.", alphanumeric, 60),
        take("1//0", alphanumeric, 40),
        take("ghp_", alphanumeric, 36),
        take("ghs_", alphanumeric, 36),
        take("github_pat_", alphanumeric, 40),
        take("glpat-", alphanumeric, 20),
        take("xoxb-", "123456789012-123456789012-AbCdEfGhIjKl", 38),
        take("xapp-", "1-A0123456789-0123456789012-abcdef", 34),
        take("sk_live_", alphanumeric, 24),
        take("rk_test_", alphanumeric, 24),
        take("whsec_", alphanumeric, 32),
        take("sk-", alphanumeric, 48),
        take("sk-proj-", alphanumeric, 48),
        take("sk-ant-api03-", alphanumeric, 60),
        take("sk-or-v1-", hex, 64),
        take("npm_", alphanumeric, 36),
        take("pypi-", alphanumeric, 60),
        take("hf_", alphanumeric, 34),
        take(
            "SG.",
            "aB3dE6gH9jK2mN5pQ8sT1v.aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hJ6kL9nP2r",
            66,
        ),
        take("dop_v1_", hex, 64),
        take("dapi", hex, 32),
        take("shpat_", hex, 32),
        take("hvs.", alphanumeric, 24),
        take(
            "AGE-SECRET-KEY-1",
            "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7LQPZRY9X8GF2TVDW0S3JN54KHCE",
            58,
        ),
        take("dckr_pat_", alphanumeric, 27),
        take("tskey-", "auth-kABCDEF1CNTRL-abcdefghijklmnop", 34),
        take("123456789:AA", alphanumeric, 33),
        take("abc8Q~", alphanumeric, 34),
        take("r8_", alphanumeric, 37),
        take("secret_", alphanumeric, 43),
    ];
    table(
        Detector::CloudKey,
        "cloud-key",
        &secrets.each_ref().map(String::as_str),
        &[
            "sk-loading-spinner-container-large",
            "sk-fading-circle-12-animation-delay",
            "task-aB3dE6gH9jK2mN5pQ8sT1v",
            "AKIAIOSFODNN7EXAMPL",
            "AKIAIOSFODNN7EXAMPLEE",
            "npm_config_registry",
            "ghp_short",
            "key-value-store",
            "secret_name",
            "hf_hub_download",
            "https://example.test//path/1//2",
            "SG.1",
            "dapi0123",
            "0af7651916cd43dd8448eb211c80319c",
            "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
            "12:34:56",
            "user_id=1",
        ],
    );
}

#[test]
fn url_credentials() {
    let redactor = only(Detector::UrlCredential);
    for (text, expected) in [
        ("https://u:K4@h.test/", "https://[url]@h.test/"),
        ("https://ghx@h.test/x", "https://[url]@h.test/x"),
        (
            "postgres://app:p%40ss@db.internal:5432/crm",
            "postgres://[url]@db.internal:5432/crm",
        ),
        ("redis://:pw@cache", "redis://[url]@cache"),
        (
            "see https://a:b@c@h.test?x=1 there",
            "see https://[url]@h.test?x=1 there",
        ),
        ("https://u:p/w@h.test/", "https://[url]@h.test/"),
        ("jdbc:mysql://u:p@h/db", "jdbc:mysql://[url]@h/db"),
        (
            "https://u:p@h.test/ https://u:p@i.test/",
            "https://[url]@h.test/ https://[url]@i.test/",
        ),
        ("ssh://git:pw@h.test/r", "ssh://[url]@h.test/r"),
        (
            "https://h.test/b?sv=2024&sig=a%2Fb%3D&se=1",
            "https://h.test/b?sv=2024&sig=[url]&se=1",
        ),
        (
            "https://h.test/?X-Amz-Signature=0af7&x=1",
            "https://h.test/?X-Amz-Signature=[url]&x=1",
        ),
    ] {
        assert_eq!(shape(&redactor.text(text)), expected);
    }
    for plain in [
        "https://h.test/",
        "https://h.test:8080/a@b",
        "https://medium.test/@user/post",
        "https://[::1]:8080/x@y",
        "ssh://git@h.test/owner/repository",
        "file:///etc/hosts",
        "std::string",
        "http://",
        "://u:p@h",
        "a: b @ c",
        "https://h.test/?q=sig&author=x",
        "signature=0af7",
    ] {
        assert_eq!(redactor.text(plain), plain);
    }
}

#[test]
fn each_detector_can_be_off() {
    let texts = [
        (Detector::Card, "4111 1111 1111 1111"),
        (Detector::Email, "dana@northwind.example"),
        (Detector::Phone, "(555)0100123"),
        (Detector::Iban, "DE89370400440532013000"),
        (Detector::Ssn, "123-45-6789"),
        (Detector::Jwt, JWT),
        (
            Detector::Pem,
            "-----BEGIN CERTIFICATE-----\nMIIEvQIBADANBgkqhkiG9w0\n-----END CERTIFICATE-----",
        ),
        (Detector::CloudKey, "AKIAIOSFODNN7EXAMPLE"),
        (Detector::UrlCredential, "redis://:pw@cache"),
    ];
    for (on, _) in texts {
        for (other, text) in texts {
            assert_eq!(only(on).text(text) != text, on == other, "{on:?} on {text}");
        }
    }
}
