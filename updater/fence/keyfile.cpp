#include "fence/keyfile.hpp"

#include <fmt/format.h>
#include <glib.h>

#include "base/handle.hpp"
#include "base/text.hpp"

namespace rasupd {
namespace {

using GText = std::unique_ptr<char, Deleter<g_free>>;
using GTextList = std::unique_ptr<char*, Deleter<g_strfreev>>;
using GErrorHandle = std::unique_ptr<GError, Deleter<g_error_free>>;

/// What we rewrite (origin files) belongs to others too: nothing of theirs may get lost.
constexpr auto kKeep = static_cast<GKeyFileFlags>(G_KEY_FILE_KEEP_COMMENTS | G_KEY_FILE_KEEP_TRANSLATIONS);

std::vector<std::string> to_vector(const GTextList& list) {
  std::vector<std::string> out;
  for (char** at = list.get(); at && *at; ++at) out.emplace_back(*at);
  return out;
}

}  // namespace

struct KeyFile::State {
  std::unique_ptr<GKeyFile, Deleter<g_key_file_free>> file{g_key_file_new()};
};

KeyFile::KeyFile() : state_(std::make_unique<State>()) {}
KeyFile::~KeyFile() = default;
KeyFile::KeyFile(KeyFile&&) noexcept = default;
KeyFile& KeyFile::operator=(KeyFile&&) noexcept = default;

Result<KeyFile> KeyFile::parse(std::string_view text, std::string_view what) {
  // GLib stops at a NUL in places and not in others; two readings of one file are one too many.
  if (text.find('\0') != std::string_view::npos)
    return fail(Kind::Config, fmt::format("{}: a NUL byte in it", what));
  KeyFile file;
  GError* raw = nullptr;
  if (text.empty()) return file;
  if (!g_key_file_load_from_data(file.state_->file.get(), text.data(), text.size(), kKeep, &raw)) {
    const GErrorHandle error(raw);
    return fail(Kind::Config, fmt::format("{}: {}", what, printable(error->message)));
  }
  return file;
}

std::vector<std::string> KeyFile::groups() const {
  return to_vector(GTextList(g_key_file_get_groups(state_->file.get(), nullptr)));
}

std::vector<std::string> KeyFile::keys(const std::string& group) const {
  return to_vector(GTextList(g_key_file_get_keys(state_->file.get(), group.c_str(), nullptr, nullptr)));
}

std::optional<std::string> KeyFile::get(const std::string& group, const std::string& key) const {
  GError* raw = nullptr;
  const GText value(g_key_file_get_string(state_->file.get(), group.c_str(), key.c_str(), &raw));
  const GErrorHandle error(raw);  // a broken escape sets it and gives a value all the same
  if (error || !value) return std::nullopt;
  return std::string(value.get());
}

void KeyFile::set(const std::string& group, const std::string& key, const std::string& value) {
  g_key_file_set_string(state_->file.get(), group.c_str(), key.c_str(), value.c_str());
}

void KeyFile::remove_group(const std::string& group) {
  g_key_file_remove_group(state_->file.get(), group.c_str(), nullptr);
}

void KeyFile::remove(const std::string& group, const std::string& key) {
  g_key_file_remove_key(state_->file.get(), group.c_str(), key.c_str(), nullptr);
}

std::string KeyFile::str() const {
  gsize length = 0;
  const GText text(g_key_file_to_data(state_->file.get(), &length, nullptr));
  return text ? std::string(text.get(), length) : std::string();
}

}  // namespace rasupd
