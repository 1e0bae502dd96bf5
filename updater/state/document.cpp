#include "state/document.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/files.hpp"

namespace rasupd {
namespace {

constexpr std::size_t kMaxStateFile = 1u << 20;
constexpr std::uint64_t kFormat = 1;

}  // namespace

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

}  // namespace rasupd
