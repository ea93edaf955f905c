//! `intelligence`: the model connection. So far a playbook, read here and handed on as JSON.

use super::super::playbook;
use super::super::problem::{Code, Problem};
use super::super::tree::Node;
use super::super::values::{Values, text_of};
use super::{Reader, relative_to, shown};
use agentd_core::wire::message::{Dialect, Model};

/// The endpoint that stands for the playbook inside agentd.
const BUILTIN: &str = "mock:builtin";

impl Reader<'_> {
    /// The root's model; `None` when it cannot be used, and `problems` says why.
    pub(super) fn model(&mut self, values: &Values<'_>) -> Option<Model> {
        match values.text("dialect") {
            Some("mock") => {}
            // A dialect that is not built or not known is a problem of its own already.
            Some(_) => return None,
            None => self.missing(values.place(), "intelligence.dialect", "mock"),
        }
        let endpoints = values.list("endpoints");
        let [endpoint] = endpoints else {
            match endpoints.get(1) {
                None => {
                    let accepted = "a list of one playbook: a path, or mock:builtin for that of agentd demo";
                    self.missing(values.place(), "intelligence.endpoints", accepted);
                }
                Some(second) => {
                    let fault = "a playbook has no second endpoint to fail over to";
                    self.problems.push(
                        Problem::at(&second.place, "intelligence.endpoints[1]", Code::InvalidValue, fault)
                            .hint("keep one"),
                    );
                }
            }
            return None;
        };
        let name = values.text("model").unwrap_or_default().to_owned();
        let json = self.playbook(endpoint)?;
        Some(Model { name, dialect: Dialect::Mock(json.into()) })
    }

    fn playbook(&mut self, endpoint: &Node) -> Option<Vec<u8>> {
        // A NUL is a problem of its own already.
        let text = text_of(endpoint).filter(|text| !text.contains('\0'))?;
        if text == BUILTIN {
            return playbook::builtin(self.problems);
        }
        let file = endpoint.place.resolve(&text);
        match playbook::load(&file, &self.absolute(&file), self.problems) {
            Ok(json) => json,
            Err(fault) => {
                let path = "intelligence.endpoints[0]";
                let fault = format!("the playbook {} cannot be read: {fault}", shown(&file));
                let problem = Problem::at(&endpoint.place, path, Code::Unreadable, fault)
                    .accepted("the path of a playbook, or mock:builtin");
                self.problems.push(match relative_to(&endpoint.place, &text) {
                    Some(hint) => problem.hint(hint),
                    None => problem,
                });
                None
            }
        }
    }
}
