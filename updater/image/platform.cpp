#include "image/platform.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>

#include "base/text.hpp"

namespace rasupd {
namespace {

struct Machine {
  std::string_view uname, go;
};

/// uname(2)'s word → GOARCH. ARM before version 7 is left out: an image for "arm" is taken to need ARMv7.
constexpr Machine kMachines[] = {
    {"x86_64", "amd64"},    {"aarch64", "arm64"},   {"armv7l", "arm"},  {"armv8l", "arm"},
    {"riscv64", "riscv64"}, {"ppc64le", "ppc64le"}, {"s390x", "s390x"}, {"loongarch64", "loong64"},
    {"i686", "386"},        {"i586", "386"},
};

/// Variants this machine can run, best first, as containers/image orders them. amd64's v2 and v3 are left
/// out: the processor was not asked.
std::vector<std::string_view> variants_of(std::string_view architecture) {
  if (architecture == "arm64") return {"v8", ""};
  if (architecture == "arm") return {"v7", "v6", "v5", ""};
  if (architecture == "amd64") return {"", "v1"};
  return {""};
}

/// BuildKit hangs provenance into an index as images for "unknown".
bool is_attestation(const Descriptor& entry) {
  return entry.platform && entry.platform->os == "unknown";
}

std::string describe(const Platform& platform) {
  const std::string text = platform.os + "/" + platform.architecture;
  return printable(platform.variant.empty() ? text : text + "/" + platform.variant, 60);
}

std::string describe_offer(const std::vector<const Descriptor*>& entries) {
  constexpr std::size_t kMaxShown = 16;
  std::vector<std::string> words;
  for (const Descriptor* entry : entries) {
    if (words.size() == kMaxShown) {
      words.emplace_back("…");
      break;
    }
    words.push_back(entry->platform ? describe(*entry->platform) : "an entry without a platform");
  }
  return words.empty() ? "nothing" : join(words, ", ");
}

const Descriptor* best_entry(const std::vector<const Descriptor*>& entries, std::string_view architecture) {
  for (const auto variant : variants_of(architecture)) {
    for (const Descriptor* entry : entries) {
      const auto& platform = entry->platform;
      if (platform && platform->os == "linux" && platform->architecture == architecture &&
          platform->variant == variant) {
        return entry;
      }
    }
  }
  if (entries.size() == 1 && !entries.front()->platform) return entries.front();
  return nullptr;
}

}  // namespace

Result<std::string> architecture_of_machine(std::string_view uname_machine) {
  for (const Machine& machine : kMachines) {
    if (machine.uname == uname_machine) return std::string(machine.go);
  }
  return fail(Kind::Unsuitable,
              fmt::format("this machine's architecture \"{}\" is not known", printable(uname_machine, 60)));
}

Result<std::string> host_architecture() {
  struct utsname names {};
  if (::uname(&names) != 0) return fail_errno(errno, "uname");
  return architecture_of_machine(names.machine);
}

Result<Descriptor> select_platform(const Index& index, std::string_view architecture) {
  std::vector<const Descriptor*> entries;
  for (const Descriptor& entry : index.manifests) {
    if (!is_attestation(entry)) entries.push_back(&entry);
  }
  const Descriptor* entry = best_entry(entries, architecture);
  if (!entry) {
    return fail(Kind::Unsuitable, fmt::format("no image for linux/{} in the index; it offers {}",
                                              printable(architecture, 60), describe_offer(entries)));
  }
  if (entry->media_type != kOciManifest && entry->media_type != kDockerManifest) {
    return fail(Kind::Untrusted,
                fmt::format("the index's entry for linux/{} is of type {}, not an image manifest",
                            architecture, printable(entry->media_type, 120)));
  }
  return *entry;
}

Result<void> check_platform(const ImageConfig& config, std::string_view architecture) {
  if (config.os == "linux" && config.architecture == architecture) return {};
  return fail(Kind::Unsuitable,
              fmt::format("the image is for {}, this machine is linux/{}",
                          describe({config.os, config.architecture, config.variant}), architecture));
}

}  // namespace rasupd
