#include <csignal>
#include <nlohmann/json.hpp>

#include "verbs/verb.hpp"

namespace rasupd {

int exit_code_of(const Error& error, int signal) {
  if (error.kind == Kind::Cancelled) return signal == SIGTERM ? 143 : 130;
  return static_cast<int>(error.kind);
}

std::string result_json(const std::string& kind, const Result<Answer>& outcome, int exit_code) {
  using Ordered = nlohmann::ordered_json;
  Ordered document = {{"apiVersion", "rasupd/v1"}, {"kind", kind}};
  if (outcome) {
    document["changed"] = outcome->changed;
    if (outcome->fields) {
      for (const auto& [key, value] : outcome->fields->items()) document[key] = value;
    }
    document["error"] = nullptr;
  } else {
    const Error& error = outcome.error();
    document["changed"] = error.changed;
    document["error"] = {{"kind", kind_name(error.kind)},
                         {"code", exit_code},
                         {"message", error.message},
                         {"hint", error.hint.empty() ? Ordered(nullptr) : Ordered(error.hint)}};
    if (!error.reason.empty()) document["error"]["reason"] = error.reason;
  }
  return document.dump(2, ' ', false, Ordered::error_handler_t::replace);
}

}  // namespace rasupd
