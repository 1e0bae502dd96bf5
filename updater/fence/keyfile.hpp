#pragma once
// GKeyFile as a value: the syntax of rasupd.conf, origin files and role.conf.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace rasupd {

class KeyFile {
 public:
  KeyFile();
  ~KeyFile();
  KeyFile(KeyFile&&) noexcept;
  KeyFile& operator=(KeyFile&&) noexcept;

  /// Error Config with `what` in front when the text is not a key file.
  static Result<KeyFile> parse(std::string_view text, std::string_view what);

  std::vector<std::string> groups() const;
  std::vector<std::string> keys(const std::string& group) const;
  /// The value with GKeyFile's escapes undone; nullopt when missing or not decodable.
  std::optional<std::string> get(const std::string& group, const std::string& key) const;
  void set(const std::string& group, const std::string& key, const std::string& value);
  void remove_group(const std::string& group);
  void remove(const std::string& group, const std::string& key);
  std::string str() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rasupd
