//! The command line itself: help, wrong usage, completions, manual pages.

use insta::assert_snapshot;

use crate::run::{command, written};

fn run(arguments: &[&str]) -> String {
    written(&command(arguments).output().unwrap())
}

#[test]
fn help_of_every_command() {
    let mut pages = vec![run(&["--help"])];
    for name in [
        "up",
        "proxy",
        "sessions",
        "calls",
        "tail",
        "show",
        "export",
        "erase",
        "prune",
        "config",
        "completions",
        "man",
    ] {
        pages.push(format!(
            "===== callbox {name} --help\n{}",
            run(&[name, "--help"])
        ));
    }
    for name in ["check", "show", "schema"] {
        pages.push(format!(
            "===== callbox config {name} --help\n{}",
            run(&["config", name, "--help"])
        ));
    }
    assert_snapshot!(pages.join("\n"), @r"
    exit code: 0
    ----- stdout -----
    Record what AI agents do with a production MCP server

    Usage: callbox [OPTIONS] <COMMAND>

    Commands:
      up           Start callbox in front of an MCP server
      proxy        Start the proxy role alone
      sessions     List sessions
      calls        List tool calls
      tail         Follow tool calls as they conclude
      show         Show a call or a session
      export       Write calls as JSON Lines or HAR
      erase        Erase a session or a principal from the log
      prune        Apply the retention limits now
      config       Check or show the configuration
      completions  Write a completion script for a shell
      man          Write a manual page
      help         Print this message or the help of the given subcommand(s)

    Options:
      -h, --help     Print help
      -V, --version  Print version

    Global options:
      -c, --config <FILE>        Configuration file
          --data <DIR>           Data directory of the call log [default: callbox-data]
          --log-format <FORMAT>  Form of the log on stderr: human or json
      -v, --verbose...           Say more on stderr; twice: even more

    Ids may be shortened to any unique beginning; times are UTC
    Exit codes: 0 fine, 1 a check found something, 2 cannot tell or an error, 64 wrong usage
    ----- stderr -----

    ===== callbox up --help
    exit code: 0
    ----- stdout -----
    Start callbox in front of an MCP server

    Usage: callbox up [OPTIONS]

    Options:
          --upstream <ORIGIN>  Origin of the MCP server, instead of those in the configuration
          --listen <ADDRESS>   Address for clients [default: 127.0.0.1:8080]
          --admin <ADDRESS>    Address of /metrics, /livez and /readyz [default: 127.0.0.1:9464]
          --ready-file <FILE>  Write the bound addresses and the process id here as JSON, once ready
      -h, --help               Print help

    Global options:
      -c, --config <FILE>        Configuration file
          --data <DIR>           Data directory of the call log [default: callbox-data]
          --log-format <FORMAT>  Form of the log on stderr: human or json
      -v, --verbose...           Say more on stderr; twice: even more

    Examples:
      callbox up --upstream http://127.0.0.1:3001
      callbox up --upstream https://mcp.example.com --listen 0.0.0.0:8080 --data /var/lib/callbox
      callbox up --config callbox.toml
    ----- stderr -----

    ===== callbox proxy --help
    exit code: 0
    ----- stdout -----
    Start the proxy role alone

    Usage: callbox proxy [OPTIONS]

    Options:
          --upstream <ORIGIN>  Origin of the MCP server, instead of those in the configuration
          --listen <ADDRESS>   Address for clients [default: 127.0.0.1:8080]
          --admin <ADDRESS>    Address of /metrics, /livez and /readyz [default: 127.0.0.1:9464]
          --ready-file <FILE>  Write the bound addresses and the process id here as JSON, once ready
      -h, --help               Print help

    Global options:
      -c, --config <FILE>        Configuration file
          --data <DIR>           Data directory of the call log [default: callbox-data]
          --log-format <FORMAT>  Form of the log on stderr: human or json
      -v, --verbose...           Say more on stderr; twice: even more

    Examples:
      callbox up --upstream http://127.0.0.1:3001
      callbox up --upstream https://mcp.example.com --listen 0.0.0.0:8080 --data /var/lib/callbox
      callbox up --config callbox.toml
    ----- stderr -----

    ===== callbox sessions --help
    exit code: 0
    ----- stdout -----
    List sessions

    Usage: callbox sessions [OPTIONS]

    Options:
      -n, --limit <N>  At most the last N, 0 for all [default: 50, with --json all]
          --json       One JSON object a line
      -h, --help       Print help

    Filters:
          --since <TIME>           Active after this time, or so long ago: 1h, 2d, 2026-11-30T14:00Z
          --until <TIME>           Started before this time
          --principal <PRINCIPAL>  Of this principal
          --tenant <NAME>          Of this tenant
          --client <NAME>          Of this client
          --upstream <NAME>        With this upstream

    Global options:
      -c, --config <FILE>        Configuration file
          --data <DIR>           Data directory of the call log [default: callbox-data]
          --log-format <FORMAT>  Form of the log on stderr: human or json
      -v, --verbose...           Say more on stderr; twice: even more

    Examples:
      callbox sessions --since 1d
      callbox sessions --tenant acme --json | jq -r .id
    ----- stderr -----

    ===== callbox calls --help
    exit code: 0
    ----- stdout -----
    List tool calls

    Usage: callbox calls [OPTIONS]

    Options:
      -n, --limit <N>  At most the last N, 0 for all [default: 50, with --json all]
          --json       One JSON object a line
      -h, --help       Print help

    Filters:
          --since <TIME>           Started after this time, or so long ago: 1h, 2d, 2026-11-30T14:00Z
          --until <TIME>           Started before this time
          --tool <NAME>            Of this tool; may be repeated
          --outcome <OUTCOME>      With this outcome; may be repeated [possible values: ok, tool_error,
                                   rpc_error, http_error, timeout, cancelled, aborted, lost, unreadable,
                                   pending, abandoned]
          --session <ID>           In this session
          --principal <PRINCIPAL>  By this principal
          --tenant <NAME>          By this tenant
          --client <NAME>          By this client
          --upstream <NAME>        To this upstream
          --catalogue <HASH>       Under this tool list, by its hash

    Global options:
      -c, --config <FILE>        Configuration file
          --data <DIR>           Data directory of the call log [default: callbox-data]
          --log-format <FORMAT>  Form of the log on stderr: human or json
      -v, --verbose...           Say more on stderr; twice: even more

    Examples:
      callbox calls --since 1h --outcome tool_error
      callbox calls --tool create_contact --tool delete_contact --limit 0
      callbox calls --session 0193a7 --json | jq .arguments
    ----- stderr -----

    ===== callbox tail --help
    exit code: 0
    ----- stdout -----
    Follow tool calls as they conclude

    Usage: callbox tail [OPTIONS]

    Options:
          --json  One JSON object a line
      -h, --help  Print help

    Filters:
          --since <TIME>           Started after this time, or so long ago: 1h, 2d, 2026-11-30T14:00Z
          --until <TIME>           Started before this time
          --tool <NAME>            Of this tool; may be repeated
          --outcome <OUTCOME>      With this outcome; may be repeated [possible values: ok, tool_error,
                                   rpc_error, http_error, timeout, cancelled, aborted, lost, unreadable,
                                   pending, abandoned]
          --session <ID>           In this session
          --principal <PRINCIPAL>  By this principal
          --tenant <NAME>          By this tenant
          --client <NAME>          By this client
          --upstream <NAME>        To this upstream
          --catalogue <HASH>       Under this tool list, by its hash

    Global options:
      -c, --config <FILE>        Configuration file
          --data <DIR>           Data directory of the call log [default: callbox-data]
          --log-format <FORMAT>  Form of the log on stderr: human or json
      -v, --verbose...           Say more on stderr; twice: even more

    Examples:
      callbox tail
      callbox tail --outcome tool_error --outcome rpc_error --json
    ----- stderr -----

    ===== callbox show --help
    exit code: 0
    ----- stdout -----
    Show a call or a session

    Usage: callbox show [OPTIONS] <ID> [NUMBER]

    Arguments:
      <ID>      Id of a call or a session, or its beginning
      [NUMBER]  Number of a call in that session

    Options:
          --full     Show long arguments, results and texts whole
          --headers  Show the HTTP headers of a call
          --json     One JSON object a line: the call, or the session with its calls and other messages
      -h, --help     Print help

    Global options:
      -c, --config <FILE>        Configuration file
          --data <DIR>           Data directory of the call log [default: callbox-data]
          --log-format <FORMAT>  Form of the log on stderr: human or json
      -v, --verbose...           Say more on stderr; twice: even more

    Examples:
      callbox show 0193a7
      callbox show 0193a7 3
      callbox show 0193a7c2-4e --full --headers
      callbox show 0193a7 --json
    ----- stderr -----

    ===== callbox export --help
    exit code: 0
    ----- stdout -----
    Write calls as JSON Lines or HAR

    Usage: callbox export [OPTIONS]

    Options:
          --har            Write an HTTP Archive (HAR 1.2) instead of JSON Lines
      -o, --output <FILE>  Write to this file; it appears when it is complete [default: stdout]
      -h, --help           Print help

    Filters:
          --since <TIME>           Started after this time, or so long ago: 1h, 2d, 2026-11-30T14:00Z
          --until <TIME>           Started before this time
          --tool <NAME>            Of this tool; may be repeated
          --outcome <OUTCOME>      With this outcome; may be repeated [possible values: ok, tool_error,
                                   rpc_error, http_error, timeout, cancelled, aborted, lost, unreadable,
                                   pending, abandoned]
          --session <ID>           In this session
          --principal <PRINCIPAL>  By this principal
          --tenant <NAME>          By this tenant
          --client <NAME>          By this client
          --upstream <NAME>        To this upstream
          --catalogue <HASH>       Under this tool list, by its hash

    Global options:
      -c, --config <FILE>        Configuration file
          --data <DIR>           Data directory of the call log [default: callbox-data]
          --log-format <FORMAT>  Form of the log on stderr: human or json
      -v, --verbose...           Say more on stderr; twice: even more

    Examples:
      callbox export --since 1d -o day.jsonl
      callbox export --har --session 0193a7 -o session.har
    ----- stderr -----

    ===== callbox erase --help
    exit code: 0
    ----- stdout -----
    Erase a session or a principal from the log

    Usage: callbox erase [OPTIONS] <--session <ID>|--principal <PRINCIPAL>>

    Options:
          --session <ID>           This session, with its calls and messages
          --principal <PRINCIPAL>  All sessions of this principal
          --yes                    Do it; without this, only what would go is printed
      -h, --help                   Print help

    Global options:
      -c, --config <FILE>        Configuration file
          --data <DIR>           Data directory of the call log [default: callbox-data]
          --log-format <FORMAT>  Form of the log on stderr: human or json
      -v, --verbose...           Say more on stderr; twice: even more

    Examples:
      callbox erase --session 0193a7c2
      callbox erase --principal h:9f2c41d0 --yes
    ----- stderr -----

    ===== callbox prune --help
    exit code: 0
    ----- stdout -----
    Apply the retention limits now

    Usage: callbox prune [OPTIONS]

    Options:
      -h, --help  Print help

    Global options:
      -c, --config <FILE>        Configuration file
          --data <DIR>           Data directory of the call log [default: callbox-data]
          --log-format <FORMAT>  Form of the log on stderr: human or json
      -v, --verbose...           Say more on stderr; twice: even more
    ----- stderr -----

    ===== callbox config --help
    exit code: 0
    ----- stdout -----
    Check or show the configuration

    Usage: callbox config [OPTIONS] <COMMAND>

    Commands:
      check   Report every problem of the configuration at once
      show    Print the settings in force, each with where it comes from
      schema  Print the JSON Schema of callbox.toml
      help    Print this message or the help of the given subcommand(s)

    Options:
      -h, --help  Print help

    Global options:
      -c, --config <FILE>        Configuration file
          --data <DIR>           Data directory of the call log [default: callbox-data]
          --log-format <FORMAT>  Form of the log on stderr: human or json
      -v, --verbose...           Say more on stderr; twice: even more
    ----- stderr -----

    ===== callbox completions --help
    exit code: 0
    ----- stdout -----
    Write a completion script for a shell

    Usage: callbox completions [OPTIONS] <SHELL>

    Arguments:
      <SHELL>  Shell to complete for [possible values: bash, elvish, fish, powershell, zsh]

    Options:
      -h, --help  Print help

    Global options:
      -c, --config <FILE>        Configuration file
          --data <DIR>           Data directory of the call log [default: callbox-data]
          --log-format <FORMAT>  Form of the log on stderr: human or json
      -v, --verbose...           Say more on stderr; twice: even more

    Examples:
      callbox completions bash > ~/.local/share/bash-completion/completions/callbox
      callbox completions zsh > ~/.zfunc/_callbox
    ----- stderr -----

    ===== callbox man --help
    exit code: 0
    ----- stdout -----
    Write a manual page

    Usage: callbox man [OPTIONS] [COMMAND]

    Arguments:
      [COMMAND]  Command to describe [default: callbox itself]

    Options:
      -h, --help  Print help

    Global options:
      -c, --config <FILE>        Configuration file
          --data <DIR>           Data directory of the call log [default: callbox-data]
          --log-format <FORMAT>  Form of the log on stderr: human or json
      -v, --verbose...           Say more on stderr; twice: even more

    Examples:
      callbox man | man -l -
      callbox man calls > callbox-calls.1
    ----- stderr -----

    ===== callbox config check --help
    exit code: 0
    ----- stdout -----
    Report every problem of the configuration at once

    Usage: callbox config check [OPTIONS]

    Options:
          --json  One JSON object a line for each problem
      -h, --help  Print help

    Global options:
      -c, --config <FILE>        Configuration file
          --data <DIR>           Data directory of the call log [default: callbox-data]
          --log-format <FORMAT>  Form of the log on stderr: human or json
      -v, --verbose...           Say more on stderr; twice: even more
    ----- stderr -----

    ===== callbox config show --help
    exit code: 0
    ----- stdout -----
    Print the settings in force, each with where it comes from

    Usage: callbox config show [OPTIONS]

    Options:
      -h, --help  Print help

    Global options:
      -c, --config <FILE>        Configuration file
          --data <DIR>           Data directory of the call log [default: callbox-data]
          --log-format <FORMAT>  Form of the log on stderr: human or json
      -v, --verbose...           Say more on stderr; twice: even more
    ----- stderr -----

    ===== callbox config schema --help
    exit code: 0
    ----- stdout -----
    Print the JSON Schema of callbox.toml

    Usage: callbox config schema [OPTIONS]

    Options:
      -h, --help  Print help

    Global options:
      -c, --config <FILE>        Configuration file
          --data <DIR>           Data directory of the call log [default: callbox-data]
          --log-format <FORMAT>  Form of the log on stderr: human or json
      -v, --verbose...           Say more on stderr; twice: even more
    ----- stderr -----
    ");
}

#[test]
fn wrong_usage_is_64() {
    assert_snapshot!(run(&["calls", "--outcome", "bad"]), @r"
    exit code: 64
    ----- stdout -----
    ----- stderr -----
    error: invalid value 'bad' for '--outcome <OUTCOME>'
      [possible values: ok, tool_error, rpc_error, http_error, timeout, cancelled, aborted, lost, unreadable, pending, abandoned]

    For more information, try '--help'.
    ");
    assert_snapshot!(run(&["calls", "--since", "yesterday"]), @r"
    exit code: 64
    ----- stdout -----
    ----- stderr -----
    error: invalid value 'yesterday' for '--since <TIME>': expected how long ago, such as `90s`, `1h` or `2d`, or a time, such as `2026-11-30` or `2026-11-30T14:00:00Z`

    For more information, try '--help'.
    ");
    assert_snapshot!(run(&["cals"]), @r"
    exit code: 64
    ----- stdout -----
    ----- stderr -----
    error: unrecognized subcommand 'cals'

      tip: a similar subcommand exists: 'calls'

    Usage: callbox [OPTIONS] <COMMAND>

    For more information, try '--help'.
    ");
    assert_snapshot!(run(&["man", "nothing"]), @r"
    exit code: 64
    ----- stdout -----
    ----- stderr -----
    error: callbox has no command nothing

    hint: callbox --help lists them
    ");
    for arguments in [
        &[][..],
        &["show"],
        &["calls", "--limit", "-1"],
        &["calls", "--nope"],
        &["erase"],
        &["up", "extra"],
        &["erase", "--session", "a", "--principal", "b"],
        &["show", "a", "--json", "--full"],
        &["completions", "csh"],
        &["config"],
        &["judge"],
    ] {
        let output = command(arguments).output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(64),
            "{arguments:?}: {}",
            written(&output)
        );
        assert!(
            output.stdout.is_empty() && !output.stderr.is_empty(),
            "{arguments:?}"
        );
    }
}

#[test]
fn version() {
    assert_eq!(
        run(&["--version"]),
        format!(
            "exit code: 0\n----- stdout -----\ncallbox {}\n----- stderr -----\n",
            env!("CARGO_PKG_VERSION")
        )
    );
}

#[test]
fn completions_name_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let script = run(&["completions", shell]);
        assert!(script.starts_with("exit code: 0"), "{script}");
        for word in ["sessions", "tool_error", "ready-file"] {
            assert!(script.contains(word), "{shell} lacks {word}");
        }
    }
}

#[test]
fn manual_pages() {
    let page = run(&["man"]);
    assert!(
        page.contains(".TH callbox 1") && page.contains("callbox\\-calls(1)"),
        "{page}"
    );
    let page = run(&["man", "calls"]);
    assert!(
        page.contains(".TH callbox-calls 1") && page.contains("\\-\\-outcome"),
        "{page}"
    );
}
