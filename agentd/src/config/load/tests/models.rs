//! `intelligence`: connections, named models, prices, keys.

use super::super::super::{Severity, render};
use super::*;
use agentd_core::config::ModelChoice;
use agentd_core::money::{Price, Usd};
use agentd_core::wire::message::{Dialect, Remote};

fn folder(text: &str) -> Folder {
    Folder::new(&[("a.yaml", text)])
}

fn remote(choice: &ModelChoice) -> &Remote {
    choice.model.dialect.remote().unwrap_or_else(|| panic!("a playbook: {choice:?}"))
}

fn tokens(choice: &ModelChoice) -> Vec<Option<&str>> {
    remote(choice).endpoints.iter().map(|endpoint| endpoint.token.as_deref()).collect()
}

fn urls(choice: &ModelChoice) -> Vec<&str> {
    remote(choice).endpoints.iter().map(|endpoint| endpoint.url.as_str()).collect()
}

fn price(input: f64, output: f64, cached: f64) -> Price {
    let usd = |dollars| Usd::from_dollars(dollars).expect("an amount");
    Price { input: usd(input), output: usd(output), cached: usd(cached) }
}

#[test]
fn everything_of_a_connection_is_read() {
    let folder = folder(
        "agent: {wake_on: [subagent_result], worker_idle: 5s}
intelligence:
  dialect: anthropic
  endpoints: [\"https://models.example/\", \"http://127.0.0.1:99/v1\"]
  model: big
  token: \"{{secret:KEY}}\"
  headers: {X-Team: \"{{secret:TEAM}} / 1\", anthropic-beta: 7}
  timeout: 30s
  max_output: 4096
  prices: {big: {input: 3, output: 15.00, cached: 0.30}, tiny-2: {input: 0.1, output: 0.4}, other: {input: 0, output: 0}}
  models:
    small: {model: tiny-2, dialect: openai, endpoints: [\"https://small.example/v1\"], token: \"{{secret:SMALL}}\"}
    same: {model: big-fast, max_output: 9}
    alike: {model: big-slow}
limits: {subagents: {queue: 3}}
subagents: {defaults: {model: small, mode: warm}}
",
    )
    .set("KEY", "k")
    .set("TEAM", "t")
    .set("SMALL", "s");
    let Loaded { config, warnings, .. } = folder.load();
    assert!(warnings.is_empty(), "{}", render(&warnings));
    let own = &config.model;
    assert!(matches!(own.model.dialect, Dialect::Anthropic(_)));
    assert_eq!((own.model.name.as_str(), remote(own).model.as_str()), ("big", "big"));
    assert_eq!(urls(own), ["https://models.example", "http://127.0.0.1:99/v1"]);
    assert_eq!(tokens(own), [Some("{{secret:KEY}}"); 2], "references stay references");
    assert_eq!(remote(own).headers["X-Team"], "{{secret:TEAM}} / 1");
    assert_eq!((remote(own).timeout_ms, remote(own).max_output), (30_000, Some(4096)));
    assert_eq!((own.price, own.unusable.as_deref()), (Some(price(3.0, 15.0, 0.3)), None));
    let small = &config.models["small"];
    assert!(matches!(small.model.dialect, Dialect::Openai(_)));
    assert_eq!((small.model.name.as_str(), remote(small).model.as_str()), ("small", "tiny-2"));
    assert_eq!(
        (urls(small), tokens(small)),
        (vec!["https://small.example/v1"], vec![Some("{{secret:SMALL}}")])
    );
    assert!(remote(small).headers.is_empty(), "headers go to their own address only");
    assert_eq!((remote(small).timeout_ms, remote(small).max_output), (120_000, None));
    assert_eq!(small.price, Some(price(0.1, 0.4, 0.1)), "cached as input");
    let same = &config.models["same"];
    assert_eq!((urls(same), tokens(same)), (urls(own), tokens(own)));
    assert_eq!((&remote(same).headers, remote(same).max_output), (&remote(own).headers, Some(9)));
    assert_eq!((remote(same).timeout_ms, same.price), (30_000, None));
    assert_eq!(
        remote(&config.models["alike"]).max_output,
        Some(4096),
        "what it leaves out it takes from the agent's own"
    );
    assert_eq!((config.defaults.model.as_deref(), config.defaults.mode), (Some("small"), Mode::Warm));
    assert_eq!((config.subagents.queue, config.wake_on_results), (3, true));
    assert_eq!((config.worker_idle, config.one_shot), (Duration::from_secs(5), true));
}

/// An embedder that builds its configuration in code gets what a file that says nothing gives.
#[test]
fn what_is_not_said_is_the_cores_default() {
    let Loaded { config, .. } =
        folder("intelligence: {dialect: openai, model: m}\n").set("OPENAI_API_KEY", "k").load();
    let built = Config::of(config.agent.clone(), config.model.model.clone());
    assert_eq!(Config { one_shot: false, ..config }, built);
}

#[test]
fn a_connection_has_defaults() {
    let own = |dialect: &str, key: &str| {
        let text = format!("intelligence: {{dialect: {dialect}, model: m}}\n");
        let Loaded { config, .. } = folder(&text).set(key, "k").load();
        assert_eq!((config.worker_idle, config.wake_on_results), (Duration::from_secs(60), false));
        assert_eq!((remote(&config.model).timeout_ms, remote(&config.model).max_output), (120_000, None));
        let (url, token) = (urls(&config.model)[0].to_owned(), tokens(&config.model)[0].map(str::to_owned));
        (url, token.expect("a token"))
    };
    assert_eq!(
        own("anthropic", "ANTHROPIC_API_KEY"),
        ("https://api.anthropic.com".into(), "{{secret:ANTHROPIC_API_KEY}}".into())
    );
    assert_eq!(
        own("openai", "OPENAI_API_KEY"),
        ("https://api.openai.com/v1".into(), "{{secret:OPENAI_API_KEY}}".into())
    );
    let text = "intelligence: {dialect: openai, model: m, endpoints: [\"http://[::1]:8080/v1\"]}\n";
    assert_eq!(tokens(&folder(text).load().config.model), [None], "a server of this machine needs no key");
}

#[test]
fn a_scripted_model_has_names_too() {
    let text = "intelligence: {dialect: mock, endpoints: [one.yaml], models: {a: {}, b: {model: x, endpoints: [two.yaml]}, c:
  {dialect: openai, model: m, endpoints: [\"http://localhost:1\"]}}, prices: {x: {input: 1, output: 1}, mock: {input: 2, output: 2}}}\n";
    let folder = folder(text);
    folder.write("one.yaml", "rules: [{reply: {text: one}}]\n");
    folder.write("two.yaml", "rules: [{reply: {text: two}}]\n");
    let config = folder.load().config;
    let script = |choice: &ModelChoice| match &choice.model.dialect {
        Dialect::Mock(json) => String::from_utf8_lossy(json).into_owned(),
        other => panic!("{other:?}"),
    };
    assert!(script(&config.model).contains("one") && script(&config.models["a"]).contains("one"));
    assert!(script(&config.models["b"]).contains("two"));
    assert_eq!((config.model.model.name.as_str(), config.models["b"].model.name.as_str()), ("mock", "b"));
    assert_eq!(
        (config.model.price, config.models["b"].price),
        (Some(price(2.0, 2.0, 2.0)), Some(price(1.0, 1.0, 1.0)))
    );
    assert_eq!(urls(&config.models["c"]), ["http://localhost:1"]);
}

#[test]
fn the_own_key_goes_to_no_other_address() {
    let text = |more: &str| {
        format!(
            "intelligence: {{dialect: openai, model: m, token: \"{{{{secret:KEY}}}}\", headers: {{A: b}}, models: {{other: {{model: x, {more}}}}}}}\n"
        )
    };
    for more in ["endpoints: [\"https://other.example/v1\"]", "dialect: anthropic"] {
        let Loaded { config, warnings, .. } = folder(&text(more)).set("KEY", "k").load();
        let other = &config.models["other"];
        assert_eq!((tokens(other), remote(other).headers.len()), (vec![None], 0), "{more}");
        let why = other.unusable.as_deref().expect("no key");
        assert!(
            why.contains("no key for https://") && why.contains("intelligence.models.other.token"),
            "{why}"
        );
        assert_eq!(
            (warnings.len(), warnings[0].severity, warnings[0].code),
            (1, Severity::Warning, Code::NoCredential)
        );
    }
    for more in ["endpoints: [\"https://api.openai.com/v1/\"]", "dialect: openai"] {
        let Loaded { config, warnings, .. } = folder(&text(more)).set("KEY", "k").load();
        assert_eq!(tokens(&config.models["other"]), [Some("{{secret:KEY}}")], "{more}");
        assert!(warnings.is_empty(), "{}", render(&warnings));
    }
    let with_header =
        "endpoints: [\"https://o.example\"], headers: {Authorization: \"Bearer {{secret:KEY}}\"}";
    assert_eq!(folder(&text(with_header)).set("KEY", "k").load().config.models["other"].unusable, None);
}

#[test]
fn an_unusable_model_keeps_nobody_from_running() {
    let text = "intelligence: {dialect: openai, model: m, endpoints: [\"http://localhost\"], models: {a: {model: x,
  endpoints: [\"https://a.example\"], token: \"{{secret:NONE}}\"}, b: {model: x, endpoints: [\"https://b.example\"],
  headers: {api-key: \"{{secret:NONE}}\"}}, c: {model: x, endpoints: [\"https://c.example\"], token_file: none}}}\n";
    let Loaded { config, warnings, .. } = folder(text).load();
    for (name, words) in
        [("a", "looked for the variable NONE"), ("b", "the secret NONE"), ("c", "/none cannot be read")]
    {
        let why = config.models[name].unusable.as_deref().expect("a reason");
        assert!(why.contains(words), "{name}: {why}");
    }
    assert_eq!(warnings.len(), 3, "{}", render(&warnings));
    assert!(
        render(&warnings).contains("a.yaml:2:44: warning: intelligence.models.a.token: the secret NONE"),
        "{}",
        render(&warnings)
    );
    assert_eq!(config.model.unusable, None);
}

#[test]
fn what_is_wrong_with_one_model_does_not_hide_what_is_with_another() {
    let models = "models: {a: {model: x, endpoints: [\"https://a.example\"]}, b: {model: x, dialect: anthropic}, c: {model: y}}";
    let problems = folder(&format!("intelligence: {{dialect: openai, model: m, {models}}}\n")).problems();
    let paths: Vec<&str> = problems.iter().map(|problem| problem.path.as_str()).collect();
    assert_eq!(
        paths,
        ["intelligence", "intelligence.models.a", "intelligence.models.b"],
        "{}",
        render(&problems)
    );
    let problems = folder(&format!("intelligence: {{dialect: openai, {models}}}\n"))
        .set("OPENAI_API_KEY", "k")
        .problems();
    let paths: Vec<&str> = problems.iter().map(|problem| problem.path.as_str()).collect();
    let all = ["intelligence.model", "intelligence.models.a", "intelligence.models.b"];
    assert_eq!(paths, all, "{}", render(&problems));
}

#[test]
fn keys_come_from_the_environment_in_order() {
    let text = "intelligence: {dialect: openai, model: m, endpoints: [\"https://a.example\", \"https://b.example\"], token: \"{{secret:FILE}}\"}\n";
    let all = [
        ("OPENAI_API_KEY", "o"),
        ("FILE", "f"),
        ("AGENTD_INTELLIGENCE_TOKEN", "t"),
        ("AGENTD_INTELLIGENCE_TOKEN_2", "2"),
    ];
    let set = |count: usize| {
        let folder = all[..count].iter().fold(folder(text), |folder, (name, value)| folder.set(name, value));
        let config = folder.load().config;
        tokens(&config.model).into_iter().map(|token| token.expect("a key").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(set(2), ["{{secret:FILE}}"; 2]);
    assert_eq!(set(3), ["{{secret:AGENTD_INTELLIGENCE_TOKEN}}"; 2]);
    assert_eq!(set(4), ["{{secret:AGENTD_INTELLIGENCE_TOKEN}}", "{{secret:AGENTD_INTELLIGENCE_TOKEN_2}}"]);
    let folder = folder(text).set("FILE", "f").set("AGENTD_INTELLIGENCE_TOKEN_1_FILE", "keys/one");
    folder.write("keys/one", "k\n");
    let file = format!("{{{{secret-file:{}}}}}", folder.path("keys/one"));
    assert_eq!(tokens(&folder.load().config.model), [Some(file.as_str()), Some("{{secret:FILE}}")]);
}

#[test]
fn variables_of_keys_that_cannot_be_used_are_named() {
    let text = "intelligence: {dialect: openai, model: m, endpoints: [\"https://a.example\"]}\n";
    for (set, words) in [
        (
            &[("AGENTD_INTELLIGENCE_TOKEN_2", "x"), ("OPENAI_API_KEY", "x")][..],
            "is for endpoint 2, and there are 1",
        ),
        (&[("AGENTD_INTELLIGENCE_TOKEN_0", "x")], "names no key"),
        (&[("AGENTD_INTELLIGENCE_TOKEN_01", "x")], "names no key"),
        (&[("AGENTD_INTELLIGENCE_TOKENS", "x")], "did you mean AGENTD_INTELLIGENCE_TOKEN?"),
        (
            &[("AGENTD_INTELLIGENCE_TOKEN", "x"), ("AGENTD_INTELLIGENCE_TOKEN_FILE", "y")],
            "AGENTD_INTELLIGENCE_TOKEN is set too",
        ),
        (&[("AGENTD_INTELLIGENCE_TOKEN_FILE", "/nowhere")], "the file /nowhere cannot be read"),
        (&[("AGENTD_INTELLIGENCE_TOKEN", "canary\n")], "has a line break in it"),
        (&[("OPENAI_API_KEY", "canary\u{201d}")], "beyond ASCII"),
        (&[("OPENAI_API_KEY", "")], "OPENAI_API_KEY is set, but empty"),
    ] {
        let folder = set.iter().fold(folder(text), |folder, (name, value)| folder.set(name, value));
        let told = render(&folder.problems());
        assert!(told.contains(words) && !told.contains("canary"), "{set:?}: {told}");
    }
}

#[test]
fn without_a_key_all_places_are_named() {
    for (dialect, key) in [("openai", "OPENAI_API_KEY"), ("anthropic", "ANTHROPIC_API_KEY")] {
        let problems = folder(&format!("intelligence: {{dialect: {dialect}, model: m}}\n")).problems();
        assert_eq!((problems.len(), problems[0].code), (1, Code::NoCredential));
        let told = render(&problems);
        for word in ["intelligence.token_file", "AGENTD_INTELLIGENCE_TOKEN_FILE", key, "agentd demo"] {
            assert!(told.contains(word), "{word}: {told}");
        }
    }
    // A header that carries one is enough, and then no provider's key goes to whoever it is for.
    let text = "intelligence: {dialect: openai, model: m, endpoints: [\"https://gateway.example\"], headers: {X-API-Key: \"{{secret:K}}\"}}\n";
    let config = folder(text).set("K", "k").set("OPENAI_API_KEY", "o").load().config;
    assert_eq!(tokens(&config.model), [None]);
    let problems = folder(text).problems();
    assert_eq!((problems.len(), problems[0].code), (1, Code::NoCredential), "{problems:?}");
}

#[test]
fn a_key_alone_is_a_configuration() {
    let run = |set: &[(&str, &str)], flags: Flags| {
        let mut folder = set.iter().fold(Folder::new(&[]), |folder, (name, value)| folder.set(name, value));
        folder.sources.flags = flags;
        folder
    };
    let model = || Flags { model: Some("m".into()), ..Flags::default() };
    let config = run(&[("ANTHROPIC_API_KEY", "k")], model()).load().config;
    assert!(matches!(config.model.model.dialect, Dialect::Anthropic(_)));
    assert_eq!((urls(&config.model)[0], config.agent.as_str()), ("https://api.anthropic.com", "agentd"));
    let flags =
        Flags { endpoints: vec!["http://localhost:1/v1".into(), "http://localhost:2/v1".into()], ..model() };
    let config = run(&[("OPENAI_API_KEY", "k")], flags).load().config;
    assert_eq!(urls(&config.model), ["http://localhost:1/v1", "http://localhost:2/v1"]);
    let flags =
        Flags { dialect: Some("openai".into()), endpoints: vec!["http://localhost:1/v1".into()], ..model() };
    assert_eq!(tokens(&run(&[], flags).load().config.model), [None]);

    let told = |set: &[(&str, &str)], flags: Flags| render(&run(set, flags).problems());
    let only_key = told(&[("OPENAI_API_KEY", "canary")], Flags::default());
    assert!(
        only_key.contains("agentd: intelligence.model: is required") && only_key.contains("--model NAME"),
        "{only_key}"
    );
    assert!(!only_key.contains("canary"));
    let both = told(&[("OPENAI_API_KEY", "a"), ("ANTHROPIC_API_KEY", "b")], model());
    assert!(both.contains("OPENAI_API_KEY") && both.contains("--dialect anthropic"), "{both}");
    let none = told(&[], model());
    for word in ["agentd.yaml", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "agentd demo"] {
        assert!(none.contains(word), "{none}");
    }
    let no_dialect = told(&[], Flags { endpoints: vec!["http://localhost".into()], ..model() });
    assert!(no_dialect.contains("intelligence.dialect: is required"), "{no_dialect}");
}

#[test]
fn both_dialects_of_one_provider_share_its_address_and_key() {
    let text = "intelligence:
  dialect: openai
  model: m
  models: {deep: {dialect: openai-responses, model: n}, other: {dialect: anthropic, model: o}}
";
    let loaded = folder(text).set("OPENAI_API_KEY", "k").load();
    let deep = &loaded.config.models["deep"];
    assert!(matches!(deep.model.dialect, Dialect::OpenaiResponses(_)), "{deep:?}");
    assert_eq!((urls(deep), deep.unusable.as_deref()), (vec!["https://api.openai.com/v1"], None));
    assert_eq!(tokens(deep), tokens(&loaded.config.model));
    let other = &loaded.config.models["other"];
    assert_eq!((urls(other), tokens(other)), (vec!["https://api.anthropic.com"], vec![None]));
    assert!(other.unusable.is_some());

    let alone =
        folder("intelligence: {dialect: openai-responses, model: m}\n").set("OPENAI_API_KEY", "k").load();
    assert!(matches!(alone.config.model.model.dialect, Dialect::OpenaiResponses(_)));
    assert_eq!(tokens(&alone.config.model), [Some("{{secret:OPENAI_API_KEY}}")]);
}

#[test]
fn a_key_in_the_environment_does_not_say_what_a_file_s_endpoints_speak() {
    let text = "intelligence: {model: m, endpoints: [\"https://gateway.example\"]}\n";
    let problems = folder(text).set("OPENAI_API_KEY", "k").problems();
    assert_eq!((problems.len(), problems[0].path.as_str()), (1, "intelligence.dialect"), "{problems:?}");
}

#[test]
fn models_that_cannot_be_read() {
    for (more, path, words) in [
        ("model: \"\"", "intelligence.model", "is empty"),
        ("endpoints: []", "intelligence.endpoints", "names no endpoint"),
        ("endpoints: https://a.example", "intelligence.endpoints", "expected a list"),
        ("endpoints: [[a]]", "intelligence.endpoints[0]", "expected one value"),
        ("endpoints: [\"https://u:canary@h\"]", "intelligence.endpoints[0]", "a password"),
        ("token: canary", "intelligence.token", "not a reference"),
        ("token: \"{{ secret:K }}\"", "intelligence.token", "spelled neither"),
        ("token: \"{{secret:K\"", "intelligence.token", "not closed"),
        ("token: \"{{secret:K}}\", token_file: a", "intelligence.token_file", "not from both"),
        ("token_file: \"a}}b\"", "intelligence.token_file", "cannot be used for a key"),
        ("headers: {Host: x}", "intelligence.headers", "set by the connection itself"),
        ("headers: {\"a b\": x}", "intelligence.headers", "not a header's name"),
        ("headers: {a: 1, A: 2}", "intelligence.headers", "stands twice"),
        ("headers: {a: \"b\\nc\"}", "intelligence.headers.a", "line break"),
        ("headers: {a: \"ü\"}", "intelligence.headers.a", "beyond ASCII"),
        ("headers: {Authorization: Bearer canary}", "intelligence.headers.Authorization", "as it is"),
        ("headers: {a: [b]}", "intelligence.headers.a", "expected one value"),
        ("max_output: 0", "intelligence.max_output", "too small"),
        ("timeout: 0s", "intelligence.timeout", "must not be zero"),
        ("prices: {m: {input: 1}}", "intelligence.prices.m.output", "is required"),
        ("prices: {m: {input: -0.5, output: 1}}", "intelligence.prices.m.input", "is negative"),
        ("prices: {m: {input: 1e3, output: 1}}", "intelligence.prices.m.input", "expected a number"),
        ("prices: {m: {input: .inf, output: 1}}", "intelligence.prices.m.input", "expected a number"),
        ("prices: {m: {input: \"1\", output: 1}}", "intelligence.prices.m.input", "expected a number"),
        ("prices: {m: {input: 99999999999, output: 1}}", "intelligence.prices.m.input", "expected a number"),
        ("prices: {m: }", "intelligence.prices.m", "expected a map"),
        ("prices: {\"\": {input: 1, output: 1}}", "intelligence.prices", "not a name"),
        ("models: {a/b: {model: x}}", "intelligence.models", "not a name"),
        ("models: {a: {}}", "intelligence.models.a.model", "is required"),
        ("models: {a: }", "intelligence.models.a", "expected a map"),
        ("models: {a: {model: x, price: 1}}", "intelligence.models.a.price", "no such key"),
        ("models: {m: {model: x}}", "intelligence.models.m", "also the agent's own model"),
        ("models: {inherit: {model: x}}", "intelligence.models.inherit", "of the run that asks"),
        ("models: {a: {dialect: mock}}", "intelligence.models.a.endpoints", "is required"),
    ] {
        let own = if more.starts_with("model:") { "" } else { "model: m, " };
        let text = format!("intelligence: {{dialect: openai, {own}{more}}}\n");
        let problems = folder(&text).set("OPENAI_API_KEY", "k").problems();
        let told = render(&problems);
        assert_eq!((problems.len(), problems[0].path.as_str()), (1, path), "{more}: {told}");
        assert!(told.contains(words) && !told.contains("canary"), "{more}: {told}");
    }
    for (text, words) in [
        ("subagents: {defaults: {model: smal}}", "did you mean small?"),
        ("subagents: {defaults: {model: zzz}}", "there is no model \"zzz\""),
    ] {
        let text = format!(
            "intelligence: {{dialect: mock, endpoints: [\"mock:builtin\"], models: {{small: {{}}}}}}\n{text}\n"
        );
        let told = render(&folder(&text).problems());
        assert!(told.contains(words) && told.contains("accepted: small, inherit"), "{told}");
    }
}

#[test]
fn flags_are_checked_as_files_are() {
    let mut folder = folder("intelligence: {dialect: openai, model: m}\n").set("OPENAI_API_KEY", "k");
    folder.sources.flags.endpoints = vec!["http://far.example".into()];
    folder.sources.flags.dialect = Some("opnai".into());
    let told = render(&folder.problems());
    assert!(
        told.contains("--dialect:1:1: intelligence.dialect") && told.contains("did you mean openai?"),
        "{told}"
    );
    folder.sources.flags.dialect = None;
    let told = render(&folder.problems());
    assert!(
        told.contains("--endpoint:1:1: intelligence.endpoints[0]: http://far.example would send"),
        "{told}"
    );
}

/// The problems as `line:column path`.
fn seen(problems: &[Problem]) -> Vec<String> {
    problems.iter().map(|p| format!("{}:{} {}", p.line, p.column, p.path)).collect()
}

#[test]
fn a_wrong_dialect_hides_nothing_of_the_connection() {
    let rest = "  model: \"\"
  endpoints: [http://far.example, ftp://a, \"https://u:p@h\", \"https://h?k=1\", https://h/v1/messages, https://fine]
  token: plain
  timeout: 5
  max_output: 0
  headers: {Host: x, A: \"{{secret:NONE}}\"}
  prices: {m: {input: 1}}
";
    let wanted = [
        "3:10 intelligence.model",
        "4:15 intelligence.endpoints[0]",
        "4:35 intelligence.endpoints[1]",
        "4:44 intelligence.endpoints[2]",
        "4:61 intelligence.endpoints[3]",
        "4:78 intelligence.endpoints[4]",
        "5:10 intelligence.token",
        "6:12 intelligence.timeout",
        "7:15 intelligence.max_output",
        "8:13 intelligence.headers",
        "8:25 intelligence.headers.A",
        "9:15 intelligence.prices.m.output",
    ];
    for dialect in ["openia", "antropic", "gemini", "[openai]", "5", "openai-response"] {
        let problems = folder(&format!("intelligence:\n  dialect: {dialect}\n{rest}")).problems();
        let all = [&["2:12 intelligence.dialect"][..], &wanted].concat();
        assert_eq!(seen(&problems), all, "{dialect}: {}", render(&problems));
    }
    let problems = folder(&format!("intelligence:\n  dialect: openai\n{rest}")).problems();
    assert_eq!(seen(&problems), wanted, "{}", render(&problems));
}

#[test]
fn of_a_dialect_that_is_not_known_nothing_is_said_that_may_be_wrong() {
    for (text, wanted) in [
        // A playbook is no address, and needs neither a model nor a key.
        ("dialect: moc, endpoints: [\"mock:builtin\"]", &["intelligence.dialect"][..]),
        ("dialect: scripted, endpoints: [\"mock:builtin\"]", &["intelligence.dialect"]),
        (
            "dialect: scripted, endpoints: [nowhere.yaml]",
            &["intelligence.dialect", "intelligence.endpoints[0]"],
        ),
        // Which variable holds its key cannot be told, nor where it is; of a slip of the pen both can.
        ("dialect: gemini, model: m", &["intelligence.dialect"]),
        ("dialect: gemini, model: m, endpoints: [\"https://g.example\"]", &["intelligence.dialect"]),
        ("dialect: opnai, model: m", &["intelligence", "intelligence.dialect"]),
        // The models beside it may have the same address.
        (
            "dialect: gemini, model: m, models: {a: {model: x}, b: {dialect: openai, model: y}}",
            &["intelligence.dialect"],
        ),
        (
            "dialect: gemini, model: m, models: {a: {}, b: {endpoints: [\"ftp://x\"]}}",
            &[
                "intelligence.dialect",
                "intelligence.models.a.model",
                "intelligence.models.b.model",
                "intelligence.models.b.endpoints[0]",
            ],
        ),
    ] {
        let problems = folder(&format!("intelligence: {{{text}}}\n")).problems();
        let paths: Vec<&str> = problems.iter().map(|problem| problem.path.as_str()).collect();
        assert_eq!(paths, wanted, "{text}: {}", render(&problems));
    }
}

#[test]
fn mistakes_do_not_hide_secrets_that_cannot_be_had() {
    let text = "intelligence:
  dialect: openai
  token: \"{{secret:NONE}}\"
  endpoints: [\"https://a.example\", ftp://b.example]
  headers:
    X-D: \"{{secret:}}\"
    X-Empty: \"{{secret:EMPTY}}\"
    X-Two: \"{{secret:NONE_A}} {{secret:NONE_B}}\"
    X-Nowhere: \"{{secret-file:nowhere}}\"
    X-Zero: \"{{secret-file:/dev/zero}}\"
    X-Pipe: \"{{secret-file:pipe}}\"
    X-Lines: \"{{secret-file:lines}}\"
    Host: x
  models:
    b: {token: \"{{secret:NONE_C}}\"}
    c: {model: x, endpoints: [ftp://c], token: \"{{secret:K\", headers: {A: \"{{secret:NONE_D}}\", B: \"{{secret:}}\"}}
";
    let folder = folder(text).set("EMPTY", "");
    folder.write("lines", "canary\ncanary\n");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mkfifoat(rustix::fs::CWD, folder.path("pipe"), mode).expect("a pipe");
    let problems = folder.problems();
    let told = render(&problems);
    for (words, count) in [
        ("intelligence.model: is required", 1),
        ("intelligence.token: the secret NONE is not there", 1),
        ("intelligence.endpoints[1]: ftp is no protocol", 1),
        ("intelligence.headers.X-D: a reference to a secret has a name", 1),
        ("intelligence.headers.X-Empty: the variable EMPTY is empty", 1),
        ("intelligence.headers.X-Two: the secret NONE_A is not there", 1),
        ("intelligence.headers.X-Two: the secret NONE_B is not there", 1),
        ("/nowhere cannot be read", 1),
        ("intelligence.headers.X-Zero: the file /dev/zero is not a regular file", 1),
        ("/pipe is not a regular file", 1),
        ("/lines has a line break in it", 1),
        ("intelligence.headers: host is set by the connection itself", 1),
        ("intelligence.models.b.model: is required", 1),
        ("intelligence.models.b.token: the secret NONE_C is not there", 1),
        ("intelligence.models.c.endpoints[0]: ftp is no protocol", 1),
        ("intelligence.models.c.token: a reference to a secret is not closed", 1),
        ("intelligence.models.c.headers.A: the secret NONE_D is not there", 1),
        ("intelligence.models.c.headers.B: a reference to a secret has a name", 1),
        ("\n18 problems\n", 1),
        ("canary", 0),
    ] {
        assert_eq!(told.matches(words).count(), count, "{words}: {told}");
    }
}
