//! The lists of a server: its tools, its resources and their templates, read at the start and whenever it says that they
//! have changed.

use super::{Client, Phase, Wire};
use crate::limits;
use crate::mcp::catalogue::Catalogue;
use crate::mcp::era::Era;
use crate::mcp::handshake::Hello;
use crate::mcp::http::End;
use crate::mcp::jsonrpc::Answer;
use crate::mcp::pages::Next;
use crate::mcp::resources::{self, READ_TOOL, Resources};
use crate::mcp::{Output, ResourceInfo, ToolInfo};
use crate::note::Level;
use serde_json::json;

/// The lists so far.
#[derive(Debug)]
pub(super) struct Lists {
    stage: Stage,
    tools: Catalogue,
    resources: Resources,
    cursor: Option<String>,
    /// Lists that could not be had.
    remarks: Vec<String>,
}

/// Which list is in hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Tools,
    Resources,
    Templates,
}

impl Lists {
    /// The request that is due.
    pub(super) fn method(&self) -> &'static str {
        match self.stage {
            Stage::Tools => "tools/list",
            Stage::Resources => "resources/list",
            Stage::Templates => "resources/templates/list",
        }
    }

    fn params(&self) -> serde_json::Value {
        match &self.cursor {
            Some(cursor) => json!({ "cursor": cursor }),
            None => json!({}),
        }
    }

    /// Takes an answer. `Ok(true)`: one more request is due.
    fn take(&mut self, resources: bool, answer: &Answer<'_>) -> Result<bool, String> {
        let method = self.method();
        let next = match (answer, self.stage) {
            (Answer::Result(raw), Stage::Tools) => self.tools.page(raw),
            (Answer::Result(raw), Stage::Resources) => self.resources.page(false, raw),
            (Answer::Result(raw), Stage::Templates) => self.resources.page(true, raw),
            (Answer::Error(error), _) => Err(format!("the server answered `{method}` with {error}")),
        };
        let next = match (next, self.stage) {
            (Ok(next), _) => next,
            (Err(error), Stage::Tools) => return Err(error),
            // Resources are beside the point of most servers: one that cannot list them keeps its tools.
            (Err(error), Stage::Resources | Stage::Templates) => {
                self.remarks.push(error);
                Next::Done
            }
        };
        self.cursor = None;
        match (next, self.stage) {
            (Next::Page(cursor), _) => self.cursor = Some(cursor),
            (Next::Done, Stage::Tools) if resources => self.stage = Stage::Resources,
            (Next::Done, Stage::Resources) => {
                self.resources.turn();
                self.stage = Stage::Templates;
            }
            (Next::Done, Stage::Tools | Stage::Templates) => return Ok(false),
        }
        Ok(true)
    }
}

impl Client {
    /// The lists of a server that has just said who it is.
    pub(super) fn list_first(&mut self, hello: Hello) {
        let lists = self.lists(&hello);
        match lists {
            Some(lists) => self.list(hello, lists),
            None => {
                self.log(Level::Warn, "mcp.tools.none", "the server declares no tools".into());
                self.ready(hello, Vec::new(), Vec::new());
            }
        }
    }

    fn lists(&self, hello: &Hello) -> Option<Box<Lists>> {
        let stage = match (hello.can("tools"), hello.can("resources")) {
            (true, _) => Stage::Tools,
            (false, true) => Stage::Resources,
            (false, false) => return None,
        };
        let marks = hello.era == Era::Stateless && matches!(self.wire, Wire::Http(_));
        Some(Box::new(Lists {
            stage,
            tools: Catalogue::new(marks),
            resources: Resources::default(),
            cursor: None,
            remarks: Vec::new(),
        }))
    }

    fn list(&mut self, hello: Hello, lists: Box<Lists>) {
        let (method, params) = (lists.method(), lists.params());
        self.phase = Phase::Listing { id: 0, hello, lists };
        let sent = self.request(method, params);
        if let Phase::Listing { id, .. } = &mut self.phase {
            *id = sent;
        }
    }

    pub(super) fn listed(&mut self, hello: Hello, mut lists: Box<Lists>, answer: &Answer<'_>) {
        match lists.take(hello.can("resources"), answer) {
            Ok(true) => self.list(hello, lists),
            Ok(false) => {
                let (tools, resources) = self.adopt(*lists);
                self.ready(hello, tools, resources);
            }
            Err(error) => self.give_up(error),
        }
    }

    /// What whole lists come to.
    fn adopt(&mut self, lists: Lists) -> (Vec<ToolInfo>, Vec<ResourceInfo>) {
        let (mut tools, traits, notes) = lists.tools.finish();
        let (resources, more) = lists.resources.finish();
        for note in notes.into_iter().chain(more).chain(lists.remarks) {
            self.log(Level::Warn, "mcp.tools.skipped", note);
        }
        let taken = traits.contains_key(READ_TOOL);
        self.traits = traits;
        self.reads_resources = !resources.is_empty() && !taken;
        if self.reads_resources {
            tools.push(resources::tool(&resources));
        }
        (tools, resources)
    }

    fn ready(&mut self, hello: Hello, tools: Vec<ToolInfo>, resources: Vec<ResourceInfo>) {
        self.listed_at = self.now;
        let ready = Output::Ready {
            server_name: hello.name.clone(),
            version: hello.version.clone(),
            protocol: hello.protocol.to_owned(),
            era: hello.era,
            capabilities: hello.capabilities.clone(),
            tools,
            resources,
        };
        self.phase = Phase::Ready { hello };
        self.announce(ready);
    }

    /// The server says that a list of its has changed.
    pub(super) fn changed(&mut self) {
        if matches!(self.phase, Phase::Ready { .. }) {
            self.relist_at.get_or_insert(self.now.max(self.listed_at + limits::MCP_RELIST_EVERY));
        }
    }

    /// What is due of the lists: one that is not answered is given up, one that has changed is read.
    pub(super) fn tick_lists(&mut self) {
        if let Some((id, _, by)) = &self.relisting
            && *by <= self.now
        {
            let id = *id;
            self.relisting = None;
            self.shut(id);
            let text =
                "the server did not answer when its tools were listed again; the old list stays in use";
            self.log(Level::Warn, "mcp.tools.stale", text.into());
        }
        if self.relisting.is_some() || self.relist_at.is_none_or(|at| at > self.now) {
            return;
        }
        let lists = if let Phase::Ready { hello } = &self.phase { self.lists(hello) } else { None };
        self.relist_at = None;
        if let Some(lists) = lists {
            self.listed_at = self.now;
            self.relist(lists);
        }
    }

    fn relist(&mut self, lists: Box<Lists>) {
        let (method, params) = (lists.method(), lists.params());
        let by = self.now + self.start_timeout;
        let id = self.request(method, params);
        self.relisting = Some((id, lists, by));
    }

    /// Whether the lists that are read again wait for an answer with this id.
    pub(super) fn relists_with(&self, id: u64) -> bool {
        self.relisting.as_ref().is_some_and(|(ours, ..)| *ours == id)
    }

    /// Whether this id is that of a list that is read again. The answer is used up then.
    pub(super) fn relisted(&mut self, id: u64, answer: &Answer<'_>) -> bool {
        if !self.relists_with(id) {
            return false;
        }
        self.shut(id);
        let Some((_, mut lists, _)) = self.relisting.take() else { return false };
        let resources = self.hello().is_some_and(|hello| hello.can("resources"));
        match lists.take(resources, answer) {
            Ok(true) => self.relist(lists),
            Ok(false) => {
                let (tools, resources) = self.adopt(*lists);
                self.announce_now();
                self.out.push_back(Output::Changed { tools, resources });
            }
            Err(error) => self.stale(&error),
        }
        true
    }

    /// The exchange of a list that is read again ended without an answer.
    pub(super) fn relist_lost(&mut self, end: &End) {
        self.relisting = None;
        self.stale(&end.words());
    }

    fn stale(&mut self, why: &str) {
        let text = format!("the tools could not be listed again, and the old list stays in use: {why}");
        self.log(Level::Warn, "mcp.tools.stale", text);
    }
}
