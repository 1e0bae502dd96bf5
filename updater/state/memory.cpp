// `held` and `floor`.

#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "state/document.hpp"
#include "state/state_dir.hpp"

namespace rasupd {

Result<std::vector<Held>> read_held(const std::string& directory) {
  std::vector<Held> list;
  for (const Json& item : TRY(read_state(directory, "held", "held", Json::array()))) {
    Held held;
    held.digest = TRY(json_string(item, "digest", "held", Kind::Failed));
    held.reason = TRY(json_string(item, "reason", "held", Kind::Failed));
    held.since = TRY(json_string(item, "since", "held", Kind::Failed));
    list.push_back(std::move(held));
  }
  return list;
}

Result<void> hold(const std::string& directory, const Held& held) {
  auto list = TRY(read_held(directory));
  std::erase_if(list, [&](const Held& h) { return h.digest == held.digest; });
  list.push_back(held);
  Json array = Json::array();
  for (const Held& h : list)
    array.push_back({{"digest", h.digest}, {"reason", h.reason}, {"since", h.since}});
  return write_state(directory, "held", "held", std::move(array));
}

Result<bool> lift(const std::string& directory, const std::string& digest) {
  auto list = TRY(read_held(directory));
  if (std::erase_if(list, [&](const Held& h) { return h.digest == digest; }) == 0) return false;
  Json array = Json::array();
  for (const Held& h : list)
    array.push_back({{"digest", h.digest}, {"reason", h.reason}, {"since", h.since}});
  TRY(write_state(directory, "held", "held", std::move(array)));
  return true;
}

Result<std::optional<std::string>> read_floor(const std::string& directory, const std::string& repository) {
  const Json floors = TRY(read_state(directory, "floor", "floor", Json::object()));
  return json_optional_string(floors, repository, "floor", Kind::Failed);
}

Result<void> write_floor(const std::string& directory, const std::string& repository,
                         const std::string& version) {
  Json floors = TRY(read_state(directory, "floor", "floor", Json::object()));
  floors[repository] = version;
  return write_state(directory, "floor", "floor", std::move(floors));
}

}  // namespace rasupd
