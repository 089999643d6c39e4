//! Which names mark a secret: the rule of the `keys` module, by example.

use callbox_wire::redact::{Redactor, RuleError, Rules};

use crate::{ARGUMENTS, redactor, shape};

fn is_secret(redactor: &Redactor, name: &str) -> bool {
    let name = serde_json::to_string(name).unwrap();
    let text = format!(r#"{{{name}:"harmless"}}"#);
    let out = shape(&redactor.json(&text, ARGUMENTS));
    assert!(
        out == text || out == format!(r#"{{{name}:"[key]"}}"#),
        "{out}"
    );
    out != text
}

#[test]
fn names_of_secrets() {
    let redactor = redactor();
    for name in [
        "password",
        "Password",
        "PASSWORD",
        "passWord",
        "user_password",
        "userPassword",
        "db-password",
        "DB_PASSWORD",
        "passwordHash",
        "password_confirmation",
        "new password",
        "password1",
        "passwords",
        "PASSWD",
        "access_token",
        "accessToken",
        "access-token",
        "ACCESS_TOKEN",
        "access.token",
        "access token",
        "accesstoken",
        "AccessTokens",
        "x-access-token-v2",
        "token",
        "Token",
        "authToken",
        "id_token",
        "session_token",
        "bearerToken",
        "csrfToken",
        "oauth2token",
        "TOKEN_VALUE",
        "apiKey",
        "API_KEY",
        "APIKey",
        "apikey",
        "api-key",
        "x-api-key",
        "openaiApiKey",
        "api_keys",
        "secret",
        "client_secret",
        "clientSecret",
        "secretKey",
        "aws_secret_access_key",
        "secrets",
        "SecretString",
        "authorization",
        "Proxy-Authorization",
        "cookie",
        "cookies",
        "Set-Cookie",
        "privateKey",
        "private_key_id",
        "rsaPrivateKeyPem",
        "DBpassword",
        "spring.datasource.password",
        "_password",
        "$token",
        "refresh_token",
        "refreshToken",
        "__secret__",
    ] {
        assert!(is_secret(redactor, name), "{name}");
    }
}

#[test]
fn names_of_other_things() {
    let redactor = redactor();
    for name in [
        "",
        "_",
        "pass",
        "passwordless",
        "passenger",
        "tokens",
        "tokens_used",
        "total_tokens",
        "max_tokens",
        "maxTokens",
        "token_count",
        "tokenCount",
        "tokenLimit",
        "token_type",
        "token_endpoint",
        "token_url",
        "tokenExpiresAt",
        "access_token_expires_in",
        "progressToken",
        "progress_token",
        "nextPageToken",
        "next_page_token",
        "pageToken",
        "NextToken",
        "continuationToken",
        "nextSyncToken",
        "cancellation_token",
        "eos_token",
        "max_token",
        "token_id",
        "tokenSymbol",
        "tokenize",
        "tokenizer",
        "detokenized",
        "secretary",
        "secretariat",
        "secret_name",
        "secretArn",
        "secret_scanning",
        "authorization_endpoint",
        "authorization_servers",
        "authorizationUrl",
        "authorize",
        "authorized",
        "cookie_policy",
        "cookie_domain",
        "cookieName",
        "cookiejar",
        "password_policy",
        "password_required",
        "passwordLength",
        "private",
        "key",
        "keys",
        "api",
        "api_version",
        "privately",
        "public_key",
        "idempotency_key",
        "authorizations_count",
        "api_key_status",
    ] {
        assert!(!is_secret(redactor, name), "{name}");
    }
}

#[test]
fn a_rule_always_matches_the_name_it_spells() {
    for rule in [
        "progress_token",
        "nextPageToken",
        "token-count",
        "max tokens",
        "contraseña",
        "x",
    ] {
        let rules = Rules {
            keys: vec![rule.to_owned()],
            ..Rules::default()
        };
        let redactor = Redactor::new(rules, &[7; 32]).unwrap();
        for name in [rule.to_owned(), rule.to_uppercase()] {
            assert!(is_secret(&redactor, &name), "{name}");
        }
    }
}

#[test]
fn names_too_long_to_split_match_anywhere() {
    let redactor = redactor();
    let filler = "x".repeat(100);
    assert!(is_secret(redactor, &format!("{filler}_password")));
    assert!(is_secret(redactor, &format!("password_{filler}")));
    assert!(!is_secret(redactor, &filler));
}

#[test]
fn names_are_read_decoded() {
    let redactor = redactor();
    let out = redactor.json(r#"{"p\u0061ssw\u006Frd":"a","\u0074oken":"b"}"#, ARGUMENTS);
    assert_eq!(
        shape(&out),
        r#"{"p\u0061ssw\u006Frd":"[key]","\u0074oken":"[key]"}"#
    );
}

#[test]
fn values_go_whole_whatever_their_type() {
    let redactor = redactor();
    for (value, expected) in [
        (r#""a""#, r#""[key]""#),
        (r#""a\nb \" c""#, r#""[key]""#),
        ("12", r#""[key]""#),
        ("-1.5e3", r#""[key]""#),
        (r#"{ "a" : [1, {"b": "c"}], "password": 5 }"#, r#""[key]""#),
        (r#"["a", "b"]"#, r#""[key]""#),
        ("[]", r#""[key]""#),
        // Nothing is hidden in these.
        ("null", "null"),
        ("true", "true"),
        ("false", "false"),
        (r#""""#, r#""""#),
    ] {
        let text = format!(r#"{{ "a":1, "password" :  {value} , "z":[2]}}"#);
        let expected = format!(r#"{{ "a":1, "password" :  {expected} , "z":[2]}}"#);
        assert_eq!(shape(&redactor.json(&text, ARGUMENTS)), expected);
    }
}

#[test]
fn pairs_of_name_and_value() {
    let redactor = redactor();
    for (text, expected) in [
        (
            r#"[{"name":"Authorization","value":"Bearer x"},{"name":"Accept","value":"y"}]"#,
            r#"[{"name":"Authorization","value":"[key]"},{"name":"Accept","value":"y"}]"#,
        ),
        (
            r#"{"Key":"DB_PASSWORD","Value":{"a":"b"}}"#,
            r#"{"Key":"DB_PASSWORD","Value":"[key]"}"#,
        ),
        (
            r#"{"key":"api-key","value":12,"n":1}"#,
            r#"{"key":"api-key","value":"[key]","n":1}"#,
        ),
        // The value first, with a finding of its own in it and another after it.
        (
            r#"{"value":"mail dana@northwind.example","x":"dana@northwind.example","name":"cookie","y":1}"#,
            r#"{"value":"[key]","x":"[email]","name":"cookie","y":1}"#,
        ),
        (
            r#"{"value":["a",{"b":"c"}],"name":"cookie"}"#,
            r#"{"value":"[key]","name":"cookie"}"#,
        ),
        (
            r#"{"value":true,"name":"cookie"}"#,
            r#"{"value":true,"name":"cookie"}"#,
        ),
        (
            r#"{"t":"{\"value\":[\"a\"],\"name\":\"token\"}"}"#,
            r#"{"t":"{\"value\":\"[key]\",\"name\":\"token\"}"}"#,
        ),
        (
            r#"{"name":"token","a":{"value":"x"}}"#,
            r#"{"name":"token","a":{"value":"x"}}"#,
        ),
        (
            r#"{"name":"token_count","value":"x"}"#,
            r#"{"name":"token_count","value":"x"}"#,
        ),
    ] {
        assert_eq!(shape(&redactor.json(text, ARGUMENTS)), expected);
    }
}

#[test]
fn bare_digits_under_a_name_that_says_what_they_are() {
    let redactor = redactor();
    for (text, expected) in [
        (r#"{"phone":"5550100123"}"#, r#"{"phone":"[phone]"}"#),
        (
            r#"{"mobilePhone":15550100123}"#,
            r#"{"mobilePhone":"[phone]"}"#,
        ),
        (
            r#"{"fax_numbers":["555 0100 12","x"]}"#,
            r#"{"fax_numbers":["[phone]","x"]}"#,
        ),
        (
            r#"{"card_number":4111111111111111}"#,
            r#"{"card_number":"[card]"}"#,
        ),
        (r#"{"pan":"4111 11111111 1111"}"#, r#"{"pan":"[card]"}"#),
        (r#"{"ssn":123456789}"#, r#"{"ssn":"[ssn]"}"#),
        (
            r#"{"socialSecurityNumber":"123456789"}"#,
            r#"{"socialSecurityNumber":"[ssn]"}"#,
        ),
        (
            r#"{"n":4111111111111111,"t":1764547199123}"#,
            r#"{"n":4111111111111111,"t":1764547199123}"#,
        ),
        (
            r#"{"order_id":"4111111111111111"}"#,
            r#"{"order_id":"4111111111111111"}"#,
        ),
        (
            r#"{"phone_id":5550100123,"card_count":16}"#,
            r#"{"phone_id":5550100123,"card_count":16}"#,
        ),
        (
            r#"{"card":"queen of hearts","phone":"none"}"#,
            r#"{"card":"queen of hearts","phone":"none"}"#,
        ),
    ] {
        assert_eq!(shape(&redactor.json(text, ARGUMENTS)), expected);
    }
}

#[test]
fn rules_that_cannot_be_followed() {
    let with_key = |key: &str| {
        let rules = Rules {
            keys: vec![key.to_owned()],
            ..Rules::default()
        };
        Redactor::new(rules, &[7; 32]).unwrap_err().to_string()
    };
    insta::assert_snapshot!(with_key("--"), @r#"redaction key "--": write a name of letters and digits, 96 at most, such as "api_key""#);
    assert!(with_key(&"x".repeat(97)).starts_with("redaction key"));
    let pointer = |tool: &str, pointer: &str| {
        let rules = Rules {
            pointers: vec![(tool.to_owned(), pointer.to_owned())],
            ..Rules::default()
        };
        Redactor::new(rules, &[7; 32]).unwrap_err().to_string()
    };
    insta::assert_snapshot!(pointer("crm", "a/b"), @r#"redaction pointer "a/b" of tool "crm": it must be empty or begin with `/`"#);
    insta::assert_snapshot!(pointer("crm", "/a~b"), @r#"redaction pointer "/a~b" of tool "crm": `~` must be written `~0`, and `/` inside a name `~1`"#);
    insta::assert_snapshot!(pointer("", "/a"), @r#"redaction pointer "/a" of tool "": its tool has no name; write `*` for all tools"#);
    let unknown: Result<callbox_wire::redact::Detector, RuleError> = "passport".parse();
    insta::assert_snapshot!(unknown.unwrap_err(), @r#"redaction detector "passport" is not supported: write one of pem, jwt, cloud-key, card, email, phone, iban, url-credential, ssn"#);
}
