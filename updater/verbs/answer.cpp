#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "verbs/verb.hpp"

namespace rasupd {
namespace {

using Ordered = nlohmann::ordered_json;

Ordered error_json(const Error& error, int exit_code) {
  Ordered out = {{"kind", kind_name(error.kind)},
                 {"code", exit_code},
                 {"message", error.message},
                 {"hint", error.hint.empty() ? Ordered(nullptr) : Ordered(error.hint)}};
  if (!error.reason.empty()) out["reason"] = error.reason;
  return out;
}

}  // namespace

Result<Reference> reference_argument(const std::string& text, const std::string& transport) {
  const bool apart = !transport.empty() && transport != "registry";
  Reference reference = TRY(apart ? Reference::parse(transport, text) : Reference::parse(text));
  if (reference.transport == Transport::registry) return reference;
  std::error_code error;
  const auto path = std::filesystem::absolute(reference.path, error).lexically_normal();
  if (error) return fail(Kind::Usage, reference.path + ": " + error.message());
  reference.path = path.string();
  while (reference.path.size() > 1 && reference.path.back() == '/') reference.path.pop_back();
  return reference;
}

int exit_code_of(const Error& error, int signal) {
  if (error.kind == Kind::Cancelled) return signal == SIGTERM ? 143 : 130;
  return static_cast<int>(error.kind);
}

std::string result_json(const std::string& kind, const Result<Answer>& outcome, int exit_code) {
  Ordered document = {{"apiVersion", "rasupd/v1"}, {"kind", kind}};
  if (outcome) {
    document["changed"] = outcome->changed;
    if (outcome->fields) {
      for (const auto& [key, value] : outcome->fields->items()) document[key] = value;
    }
    document["error"] = outcome->failure ? error_json(*outcome->failure, exit_code) : Ordered(nullptr);
  } else {
    document["changed"] = outcome.error().changed;
    document["error"] = error_json(outcome.error(), exit_code);
  }
  return document.dump(2, ' ', false, Ordered::error_handler_t::replace);
}

}  // namespace rasupd
