import CallsignVerify

func answerInvalid(_ cause: (any Error)? = nil) -> CallsignError { CallsignError("ANSWER_INVALID", "", cause: cause) }

func bodyOf(_ members: [String: String?]) -> [String: JSONValue] { members.compactMapValues { $0.map { .string($0) } } }
