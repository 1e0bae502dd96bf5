// `held` and `floor`: small JSON documents {"version": 1, …}, replaced durably as a whole.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/files.hpp"
#include "base/json.hpp"
#include "state/state_dir.hpp"

namespace rasupd {
namespace {

constexpr std::size_t kMaxStateFile = 1u << 20;
constexpr std::uint64_t kFormat = 1;

/// The document's member `key` of this format, an empty one when the file does not exist.
Result<Json> read_state(const std::string& directory, const char* file, const char* key, Json empty) {
  const std::string path = path_join(directory, file);
  const auto text = TRY(read_file(path, kMaxStateFile));
  if (!text) return empty;
  Json document = TRY(parse_json(*text, path, Kind::Failed, kMaxStateFile));
  const std::uint64_t version = TRY(json_unsigned(document, "version", path, Kind::Failed));
  if (version != kFormat) {
    return fail(Kind::Failed, fmt::format("{}: format {} was written by a newer rasupd", path, version),
                "boot the newer deployment, or remove the file if its memory is not needed");
  }
  if (!document.contains(key) || document[key].type() != empty.type()) {
    return fail(Kind::Failed, fmt::format("{}: \"{}\" is missing", path, key));
  }
  return std::move(document[key]);
}

Result<void> write_state(const std::string& directory, const char* file, const char* key, Json value) {
  if (!exists(directory)) TRY(make_directories(directory, 0700));
  const Json document = {{"version", kFormat}, {key, std::move(value)}};
  return write_file_durably(path_join(directory, file), document.dump(2) + "\n", 0600);
}

}  // namespace

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
