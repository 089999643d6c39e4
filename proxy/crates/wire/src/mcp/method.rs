//! Method names of all revisions.

/// A method, as far as callbox tells methods apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// `initialize`
    Initialize,
    /// `tools/call`
    ToolsCall,
    /// `tools/list`
    ToolsList,
    /// `resources/read`
    ResourcesRead,
    /// `prompts/get`
    PromptsGet,
    /// `server/discover`
    Discover,
    /// `subscriptions/listen`
    Listen,
    /// `tasks/get`
    TasksGet,
    /// `tasks/result`
    TasksResult,
    /// `tasks/update`
    TasksUpdate,
    /// `tasks/cancel`
    TasksCancel,
    /// `elicitation/create`
    Elicitation,
    /// `sampling/createMessage`
    Sampling,
    /// `notifications/cancelled`
    Cancelled,
    /// `notifications/progress`
    Progress,
    /// `notifications/message`
    LogMessage,
    /// `notifications/tasks/status` (2025-11-25) and `notifications/tasks` (modern extension)
    TaskStatus,
    /// Any other, known to the specification or not.
    Other,
}

impl Method {
    /// By its name; names are case-sensitive.
    pub fn of(name: &str) -> Self {
        match name {
            "initialize" => Self::Initialize,
            "tools/call" => Self::ToolsCall,
            "tools/list" => Self::ToolsList,
            "resources/read" => Self::ResourcesRead,
            "prompts/get" => Self::PromptsGet,
            "server/discover" => Self::Discover,
            "subscriptions/listen" => Self::Listen,
            "tasks/get" => Self::TasksGet,
            "tasks/result" => Self::TasksResult,
            "tasks/update" => Self::TasksUpdate,
            "tasks/cancel" => Self::TasksCancel,
            "elicitation/create" => Self::Elicitation,
            "sampling/createMessage" => Self::Sampling,
            "notifications/cancelled" => Self::Cancelled,
            "notifications/progress" => Self::Progress,
            "notifications/message" => Self::LogMessage,
            "notifications/tasks/status" | "notifications/tasks" => Self::TaskStatus,
            _ => Self::Other,
        }
    }

    /// Exists in stateless revisions only.
    pub fn is_modern_only(self) -> bool {
        matches!(self, Self::Discover | Self::Listen)
    }
}
