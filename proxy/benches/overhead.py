#!/usr/bin/env python3
"""The overhead of callbox: direct, nginx (plain reverse proxy, records nothing) and callbox (records everything), in one run.

    cargo build --release --workspace
    proxy/benches/overhead.py table [--seconds 4] [--rounds 2] [--only json-200,sse-4096]
    proxy/benches/overhead.py big-body       # 4 GiB through one response: resident memory
    proxy/benches/overhead.py sessions       # 100,000 sessions never closed: resident memory before and after
    proxy/benches/overhead.py log DIR        # query times on an existing data directory

Needs nginx in PATH for its column. Everything listens on 127.0.0.1, on free ports, and is stopped at the end. Machines are
noisy: rounds alternate the targets, and what is printed are medians and ratios within this run.
"""
import argparse, json, os, pathlib, shutil, signal, socket, statistics, subprocess, sys, tempfile, threading, time, urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("CALLBOX_BENCH_BIN", ROOT / "target/release"))
CASES = [f"{mode}-{size}" for mode in ("json", "sse") for size in (200, 4096, 262144)]

NGINX = """worker_processes 1; daemon off; pid nginx.pid; error_log error.log warn;
events {{ worker_connections 4096; }}
http {{
  access_log off; client_max_body_size 0; keepalive_requests 100000000;
  client_body_temp_path b; proxy_temp_path p; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;
  upstream up {{ server 127.0.0.1:{up}; keepalive 256; keepalive_requests 100000000; }}
  server {{ listen 127.0.0.1:{port}; location / {{
    proxy_pass http://up; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $http_host;
    proxy_buffering off; proxy_request_buffering off; proxy_buffer_size 64k; proxy_buffers 8 64k; proxy_busy_buffers_size 64k;
    proxy_read_timeout 1h; }} }}
}}
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def until(what, condition, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    sys.exit(f"{what}: not in {seconds} s")


def accepts(port):
    try:
        socket.create_connection(("127.0.0.1", port), 0.2).close()
        return True
    except OSError:
        return False


def rss_mib(pid, key="VmRSS"):
    for line in open(f"/proc/{pid}/status"):
        if line.startswith(key + ":"):
            return int(line.split()[1]) / 1024
    return 0.0


def cpu_seconds(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Stage:
    """The processes of one run."""

    def __init__(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="callbox-bench-"))
        self.children = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for child in reversed(self.children):
            if child.poll() is None:
                child.send_signal(signal.SIGTERM)
        for child in self.children:
            try:
                child.wait(30)
            except subprocess.TimeoutExpired:
                child.kill()
        shutil.rmtree(self.dir, ignore_errors=True)

    def start(self, name, argv, **options):
        log = open(self.dir / f"{name}.log", "w")
        child = subprocess.Popen([str(a) for a in argv], stderr=log, **options)
        self.children.append(child)
        return child

    def upstream(self):
        child = self.start("upstream", [BIN / "bench-upstream"], stdout=subprocess.PIPE, text=True)
        return json.loads(child.stdout.readline())["port"]

    def nginx(self, up):
        if not shutil.which("nginx"):
            return None, None
        port, home = free_port(), self.dir / "nginx"
        home.mkdir()
        home.chmod(0o777)
        self.dir.chmod(0o755)
        (home / "nginx.conf").write_text(NGINX.format(up=up, port=port))
        child = self.start("nginx", ["nginx", "-p", home, "-c", home / "nginx.conf"])
        until("nginx", lambda: accepts(port))
        worker = until("nginx worker", lambda: open(f"/proc/{child.pid}/task/{child.pid}/children").read().split())
        return port, int(worker[0])

    def callbox(self, up, *flags):
        ready = self.dir / "ready.json"
        ready.unlink(missing_ok=True)
        data = self.dir / "data"
        child = self.start("callbox", [BIN / "callbox", "up", "--upstream", f"http://127.0.0.1:{up}", "--listen", "127.0.0.1:0",
                                       "--admin", "127.0.0.1:0", "--data", data, "--ready-file", ready, *flags])
        until("callbox", lambda: child.poll() is not None or (ready.exists() and ready.read_text()))
        if child.poll() is not None:
            sys.exit((self.dir / "callbox.log").read_text())
        facts = json.loads(ready.read_text())
        return int(facts["listen"].rsplit(":", 1)[1]), facts["admin"], child, data


def load(url, connections, seconds, rate=None):
    argv = [BIN / "bench-load", url, connections, seconds] + ([rate] if rate else [])
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, timeout=seconds + 60)
    if done.returncode:
        sys.exit(done.stderr)
    figures = json.loads(done.stdout)
    if figures["errors"]:
        print(f"  errors: {figures['errors'][:3]}", file=sys.stderr)
    return figures


def metrics(admin):
    text = urllib.request.urlopen(f"http://{admin}/metrics").read().decode()
    values = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            family = name.split("{")[0]
            values[family] = values.get(family, 0) + float(value)
    return values


def settle(admin):
    """Waits until the recorder has caught up; gives its figures."""
    def caught_up():
        now = metrics(admin)
        return now if now["callbox_records_offered_total"] == now["callbox_records_stored_total"] + now["callbox_dropped_total"] else None
    return until("recorder", caught_up, 60)


def median(runs, key):
    return statistics.median(run[key] for run in runs)


def table(options):
    print("| case | target | closed: req/s | of nginx | open at | p50 us (added) | p99 us (added) | first event p50 us | CPU us/req | RSS MiB | dropped |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for case in options.only.split(","):
        mode, size = case.split("-")
        connections = 32 if int(size) < 100_000 else 8
        with Stage() as stage:
            up = stage.upstream()
            nginx, worker = stage.nginx(up)
            listen, admin, callbox, data = stage.callbox(up, *options.flag)
            targets = {"direct": (up, None), "nginx": (nginx, worker), "callbox": (listen, callbox.pid)}
            if not nginx:
                del targets["nginx"]
            url = lambda name: f"http://127.0.0.1:{targets[name][0]}/mcp?mode={mode}&size={size}"
            closed, opened, cpu = {}, {}, {}
            for _ in range(options.rounds):
                for name, (_, pid) in targets.items():
                    before = cpu_seconds(pid) if pid else 0
                    closed.setdefault(name, []).append(load(url(name), connections, options.seconds))
                    if pid:
                        used = cpu_seconds(pid) - before
                        cpu.setdefault(name, []).append(used / closed[name][-1]["answered"] * 1e6)
                    if name == "callbox":
                        settle(admin)
            rate = int(median(closed["callbox"], "per_second") / 2)
            for _ in range(options.rounds):
                for name in targets:
                    opened.setdefault(name, []).append(load(url(name), connections, options.seconds, rate))
            figures = settle(admin)
            answered = sum(run["answered"] for runs in (closed, opened) for run in runs["callbox"])
            base = {key: median(opened["direct"], key) for key in ("p50", "p99")}
            for name, (_, pid) in targets.items():
                per_second = median(closed[name], "per_second")
                ratio = per_second / median(closed["nginx"], "per_second") if nginx else float("nan")
                p50, p99 = median(opened[name], "p50"), median(opened[name], "p99")
                row = [case, name, f"{per_second:,.0f}", f"{ratio:.2f}", f"{rate:,}/s", f"{p50:.0f} ({p50 - base['p50']:+.0f})",
                       f"{p99:.0f} ({p99 - base['p99']:+.0f})", f"{median(opened[name], 'first_p50'):.0f}",
                       f"{statistics.median(cpu[name]):.1f}" if name in cpu else "-", f"{rss_mib(pid):.0f}" if pid else "-",
                       f"{figures['callbox_dropped_total']:.0f}" if name == "callbox" else "-"]
                print("| " + " | ".join(row) + " |", flush=True)
            stored = sum(v for k, v in figures.items() if k == "mcp_tool_calls_total")
            disk = sum(f.stat().st_size for f in data.iterdir())
            print(f"  {case}: {answered:,} calls answered, {stored:,.0f} recorded, {disk / max(stored, 1):.0f} bytes on disk per call", file=sys.stderr, flush=True)


def big_body(options):
    with Stage() as stage:
        up = stage.upstream()
        listen, admin, callbox, _ = stage.callbox(up, *options.flag)
        want, got = 4 << 30, 0
        with urllib.request.urlopen(f"http://127.0.0.1:{listen}/bytes?size={want}") as answer:
            while block := answer.read(1 << 20):
                got += len(block)
        print(f"{got:,} of {want:,} bytes; peak resident {rss_mib(callbox.pid, 'VmHWM'):.0f} MiB")
        sys.exit(got != want)


def sessions(options):
    count, clients = options.count, 8
    with Stage() as stage:
        up = stage.upstream()
        listen, admin, callbox, _ = stage.callbox(up, *options.flag)
        load(f"http://127.0.0.1:{listen}/mcp", 8, 5)
        settle(admin)
        before = rss_mib(callbox.pid)

        def open_sessions(n):
            import http.client
            connection = http.client.HTTPConnection("127.0.0.1", listen)
            for k in range(n):
                body = json.dumps({"jsonrpc": "2.0", "id": k, "method": "initialize", "params": {"protocolVersion": "2025-06-18",
                                   "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}}, separators=(",", ":"))
                connection.request("POST", "/mcp", body, {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"})
                connection.getresponse().read()

        threads = [threading.Thread(target=open_sessions, args=(count // clients,)) for _ in range(clients)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        figures = settle(admin)
        after = rss_mib(callbox.pid)
        print(f"{count:,} sessions opened, none closed: resident {before:.1f} MiB before, {after:.1f} MiB after ({after / before - 1:+.0%}); "
              f"{figures['callbox_sessions']:.0f} in memory, {figures['callbox_dropped_total']:.0f} dropped")


def log(options):
    def timed(*words):
        start = time.monotonic()
        out = subprocess.run([str(BIN / "callbox"), *words, "--data", options.dir], capture_output=True, text=True)
        return time.monotonic() - start, out.stdout
    _, newest = timed("calls", "--json", "--limit", "1")
    call = json.loads(newest)
    for words in (["calls"], ["calls", "--tool", call["tool"]], ["calls", "--tool", "no_such_tool"], ["calls", "--outcome", "tool_error"],
                  ["calls", "--session", call["session"]], ["calls", "--since", "10m"], ["sessions"], ["show", call["id"]]):
        print(f"{timed(*words)[0] * 1000:8.1f} ms  callbox {' '.join(words)}")


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
commands = parser.add_subparsers(required=True)
for name, function in (("table", table), ("big-body", big_body), ("sessions", sessions), ("log", log)):
    command = commands.add_parser(name)
    command.set_defaults(function=function)
    command.add_argument("--flag", action="append", default=[], help="a further flag for callbox (repeat)")
    if function is table:
        command.add_argument("--seconds", type=float, default=4)
        command.add_argument("--rounds", type=int, default=2)
        command.add_argument("--only", default=",".join(CASES))
    if function is sessions:
        command.add_argument("--count", type=int, default=100_000)
    if function is log:
        command.add_argument("dir")
options = parser.parse_args()
options.function(options)
