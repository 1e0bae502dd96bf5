#include "state/trial.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "base/files.hpp"
#include "base/json.hpp"
#include "state/document.hpp"

namespace rasupd {
namespace {

constexpr const char* kTrial = "trial";
constexpr const char* kGood = "good";

}  // namespace

Result<std::optional<TrialRecord>> read_trial(const std::string& state_dir) {
  const Json json = TRY(read_state(state_dir, kTrial, kTrial, Json::object()));
  if (json.empty()) return std::optional<TrialRecord>{};
  TrialRecord record;
  record.deployment = TRY(json_string(json, "deployment", kTrial, Kind::Failed));
  record.digest = TRY(json_string(json, "digest", kTrial, Kind::Failed));
  record.version = TRY(json_string(json, "imageVersion", kTrial, Kind::Failed));
  record.repository = TRY(json_string(json, "repository", kTrial, Kind::Failed));
  record.previous = TRY(json_string(json, "previous", kTrial, Kind::Failed));
  record.previous_digest = TRY(json_string(json, "previousDigest", kTrial, Kind::Failed));
  record.since = TRY(json_string(json, "since", kTrial, Kind::Failed));
  record.tries = static_cast<unsigned>(TRY(json_unsigned(json, "tries", kTrial, Kind::Failed)));
  record.starts = static_cast<unsigned>(TRY(json_unsigned(json, "starts", kTrial, Kind::Failed)));
  record.last_boot_id = TRY(json_string(json, "lastBootId", kTrial, Kind::Failed));
  return record;
}

Result<void> write_trial(const std::string& state_dir, const TrialRecord& record) {
  return write_state(state_dir, kTrial, kTrial,
                     {{"deployment", record.deployment},
                      {"digest", record.digest},
                      {"imageVersion", record.version},
                      {"repository", record.repository},
                      {"previous", record.previous},
                      {"previousDigest", record.previous_digest},
                      {"since", record.since},
                      {"tries", record.tries},
                      {"starts", record.starts},
                      {"lastBootId", record.last_boot_id}});
}

Result<bool> drop_trial(const std::string& state_dir) {
  const std::string path = path_join(state_dir, kTrial);
  if (::unlink(path.c_str()) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return false;
    return fail_errno(errno, "removing " + path);
  }
  TRY(fsync_directory(state_dir));
  return true;
}

Result<std::optional<GoodRecord>> read_good(const std::string& state_dir) {
  const Json json = TRY(read_state(state_dir, kGood, kGood, Json::object()));
  if (json.empty()) return std::optional<GoodRecord>{};
  GoodRecord record;
  record.deployment = TRY(json_string(json, "deployment", kGood, Kind::Failed));
  record.digest = TRY(json_string(json, "digest", kGood, Kind::Failed));
  record.since = TRY(json_string(json, "since", kGood, Kind::Failed));
  return record;
}

Result<void> write_good(const std::string& state_dir, const GoodRecord& record) {
  return write_state(
      state_dir, kGood, kGood,
      {{"deployment", record.deployment}, {"digest", record.digest}, {"since", record.since}});
}

}  // namespace rasupd
