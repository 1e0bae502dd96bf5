#include "deploy/kargs.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <map>

#define TOML_EXCEPTIONS 0
#include <fmt/format.h>
#include <toml++/toml.h>

#include "base/files.hpp"
#include "base/text.hpp"

namespace rasupd {
namespace {

/// bootc(8) kargs.d and our own; both formats are the same.
constexpr const char* kFolders[] = {"usr/lib/bootc/kargs.d", "usr/lib/rasupd/kargs.d"};
/// A kernel command line is at most a few KiB (COMMAND_LINE_SIZE): more than this is no argument file.
constexpr std::size_t kMaxBytes = 64 * 1024;

/// Image authors write Rust's names (bootc's format), Go's, or uname's; all mean one machine.
std::string_view canonical_architecture(std::string_view name) {
  static constexpr std::pair<std::string_view, std::string_view> kAliases[] = {
      {"x86_64", "amd64"}, {"aarch64", "arm64"},     {"x86", "386"},
      {"i386", "386"},     {"i686", "386"},          {"armv7l", "arm"},
      {"armv6l", "arm"},   {"powerpc64", "ppc64le"}, {"loongarch64", "loong64"}};
  for (const auto& [alias, canonical] : kAliases) {
    if (name == alias) return canonical;
  }
  return name;
}

tl::unexpected<Error> bad(std::string_view what, std::string_view why) {
  return fail(
      Kind::Unsuitable, fmt::format("{}: {}", printable(what), printable(why)),
      "a kargs.d file has `kargs = [\"…\"]` and may have `match-architectures = [\"…\"]`, nothing else");
}

Result<std::vector<std::string>> strings_of(const toml::node& node, std::string_view key,
                                            std::string_view what) {
  const toml::array* array = node.as_array();
  if (array == nullptr) return bad(what, fmt::format("`{}` is not an array of strings", key));
  std::vector<std::string> strings;
  for (const auto& element : *array) {
    const auto* text = element.as_string();
    if (text == nullptr) return bad(what, fmt::format("`{}` is not an array of strings", key));
    strings.push_back(text->get());
  }
  return strings;
}

/// Splits at white space outside double quotes, as the kernel does (lib/cmdline.c): the boot entry knows only
/// single arguments, so an unsplit "a b" would never be found there again.
Result<std::vector<std::string>> arguments_of(const std::string& text, std::string_view what) {
  std::vector<std::string> arguments;
  std::string current;
  bool quoted = false;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      return bad(what, "a kernel argument has a control character");
    if (c == '"') quoted = !quoted;
    if (c == ' ' && !quoted) {
      if (!current.empty()) arguments.push_back(std::move(current));
      current.clear();
    } else {
      current += c;
    }
  }
  if (quoted) return bad(what, "a kernel argument has an unclosed quote");
  if (!current.empty()) arguments.push_back(std::move(current));
  if (arguments.empty()) return bad(what, "an empty kernel argument");
  for (const auto& argument : arguments) {
    if (argument.starts_with("ostree="))
      return bad(what, "`ostree=` names the deployment and is not the image's to set");
  }
  return arguments;
}

Result<std::string> read_below(int root, const std::string& path) {
  const Fd fd = TRY(open_beneath(root, path, O_RDONLY | O_NONBLOCK));
  std::string text;
  for (;;) {
    char buffer[4096];
    const ssize_t got = ::read(fd.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno(errno, path);
    if (got == 0) return text;
    text.append(buffer, static_cast<std::size_t>(got));
    if (text.size() > kMaxBytes) return bad(path, "larger than 64 KiB");
  }
}

std::map<std::string, int> counts_of(const std::vector<std::string>& arguments) {
  std::map<std::string, int> counts;
  for (const auto& argument : arguments) ++counts[argument];
  return counts;
}

/// Those of `these` that `others` does not have as often, in order.
std::vector<std::string> surplus(const std::vector<std::string>& these,
                                 const std::vector<std::string>& others) {
  auto counts = counts_of(others);
  std::vector<std::string> more;
  for (const auto& argument : these) {
    if (--counts[argument] < 0) more.push_back(argument);
  }
  return more;
}

}  // namespace

Result<std::vector<std::string>> parse_kargs_toml(std::string_view text, std::string_view what,
                                                  std::string_view architecture) {
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    return bad(what,
               fmt::format("line {}: {}", parsed.error().source().begin.line, parsed.error().description()));
  }
  std::vector<std::string> lines, architectures;
  bool has_kargs = false, has_match = false;
  for (const auto& [key, node] : parsed.table()) {
    if (key == "kargs") {
      has_kargs = true;
      lines = TRY(strings_of(node, "kargs", what));
    } else if (key == "match-architectures") {
      has_match = true;
      architectures = TRY(strings_of(node, "match-architectures", what));
    } else {
      return bad(what, fmt::format("unknown key `{}`", std::string_view(key.str())));
    }
  }
  if (!has_kargs) return bad(what, "no `kargs`");
  std::vector<std::string> arguments;
  for (const auto& line : lines) {
    for (auto& argument : TRY(arguments_of(line, what))) arguments.push_back(std::move(argument));
  }
  const auto ours = [&](const std::string& name) {
    return canonical_architecture(name) == canonical_architecture(architecture);
  };
  if (has_match && std::none_of(architectures.begin(), architectures.end(), ours)) arguments.clear();
  return arguments;
}

Result<std::vector<std::string>> read_kargs_d(const std::string& root, std::string_view architecture) {
  const Fd fd = TRY(open_directory(root));
  std::vector<std::pair<std::string, std::string>> files;  // name, path beneath the root
  for (const char* folder : kFolders) {
    for (const auto& name : TRY(list_directory(path_join(root, folder)))) {
      if (name.ends_with(".toml")) files.emplace_back(name, path_join(folder, name));
    }
  }
  std::stable_sort(files.begin(), files.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> all;
  for (const auto& [name, path] : files) {
    auto text = read_below(fd.get(), path);
    if (!text) return bad("/" + path, text.error().message);
    for (auto& argument : TRY(parse_kargs_toml(*text, "/" + path, architecture)))
      all.push_back(std::move(argument));
  }
  return all;
}

std::vector<std::string> merge_kargs(const std::vector<std::string>& current,
                                     const std::vector<std::string>& old_image,
                                     const std::vector<std::string>& new_image) {
  auto removed = counts_of(surplus(old_image, new_image));
  std::vector<std::string> merged;
  // From the end: the image's arguments were appended, so an equal one of the machine's own stands before it.
  for (auto at = current.rbegin(); at != current.rend(); ++at) {
    if (removed[*at] > 0) {
      --removed[*at];
    } else {
      merged.push_back(*at);
    }
  }
  std::reverse(merged.begin(), merged.end());
  for (auto& argument : surplus(new_image, old_image)) merged.push_back(std::move(argument));
  return merged;
}

}  // namespace rasupd
