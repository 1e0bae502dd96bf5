#include "deploy/host.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cstdlib>

#include "base/files.hpp"
#include "base/text.hpp"
#include "bootloader/entries.hpp"
#include "deploy/image_facts.hpp"
#include "deploy/origin.hpp"
#include "fence/sysroot.hpp"
#include "state/state_dir.hpp"
#include "state/trial.hpp"

namespace rasupd {
namespace {

constexpr std::size_t kMaxOriginBytes = 64u << 10;
constexpr std::size_t kMaxCmdline = 64u << 10;

/// ostree/deploy/STATEROOT/deploy/CHECKSUM.SERIAL taken apart; nullopt when it is not one.
std::optional<Deployment> parse_directory(const std::string& directory) {
  const auto parts = split(directory, '/');
  if (parts.size() != 5) return std::nullopt;
  const auto name = split(parts[4], '.');
  if (name.size() != 2 || name[0].size() != 64 || !from_hex(name[0]) || name[1].empty() ||
      name[1].size() > 9 || name[1].find_first_not_of("0123456789") != std::string::npos) {
    return std::nullopt;
  }
  Deployment deployment;
  deployment.stateroot = parts[2];
  deployment.checksum = name[0];
  deployment.serial = static_cast<int>(std::strtol(name[1].c_str(), nullptr, 10));
  deployment.directory = directory;
  return deployment;
}

class Reader {
 public:
  explicit Reader(const std::string& sysroot) : sysroot_(sysroot) {}

  Result<HostState> read() {
    state_.ostree = exists(path_join(sysroot_, "ostree/repo/config"));
    directories_ = TRY(list_deployment_directories(sysroot_));
    if (!state_.ostree) {
      if (!directories_.empty()) {
        state_.problems.push_back(path_join(sysroot_, "ostree/repo") +
                                  " is missing or damaged, though there are deployments");
      }
      return std::move(state_);
    }
    const boot::Menu menu = TRY(boot::read_menu(sysroot_));
    for (const std::string& problem : menu.problems) state_.problems.push_back(problem);
    for (const boot::Entry& entry : menu.entries) TRY(add_entry(entry));
    if (menu.entries.empty() && !directories_.empty()) {
      state_.problems.push_back(
          fmt::format("/boot is not mounted or its entries are gone: {} deployment{} and no boot "
                      "entry in {}",
                      directories_.size(), directories_.size() == 1 ? "" : "s",
                      path_join(sysroot_, "boot/loader/entries")));
    }
    if (!state_.deployments.empty()) state_.first = 0;
    TRY(find_booted());
    if (state_.running) TRY(add_staged());
    find_rollback();
    find_good();
    return std::move(state_);
  }

 private:
  Result<void> add_entry(const boot::Entry& entry) {
    const std::string directory = TRY(boot::resolve(sysroot_, entry));
    auto deployment = parse_directory(directory);
    if (!deployment) {
      return fail(Kind::Boot,
                  fmt::format("boot entry {} leads to {}, which is no deployment", entry.file, directory));
    }
    for (const Deployment& other : state_.deployments) {
      if (other.directory == directory) {
        state_.problems.push_back(
            fmt::format("boot entry {} names a deployment that another entry names too", entry.file));
        return {};
      }
    }
    if (!exists(boot::boot_file(sysroot_, entry.kernel))) {
      state_.problems.push_back(fmt::format("boot entry {}: its kernel {} is missing in /boot", entry.file,
                                            printable(entry.kernel)));
    }
    deployment->boot_checksum = entry.boot_checksum;
    for (std::string& argument : boot::split_options(entry.options)) {
      if (!argument.starts_with("ostree=")) deployment->kargs.push_back(std::move(argument));
    }
    describe(*deployment);
    state_.deployments.push_back(std::move(*deployment));
    return {};
  }

  /// Commit and origin.
  void describe(Deployment& deployment) {
    read_image_facts(path_join(sysroot_, "ostree/repo"), deployment);
    const std::string path = path_join(sysroot_, deployment.directory + ".origin");
    const auto text = read_file(path, kMaxOriginBytes, Kind::Boot);
    std::string problem;
    if (!text) {
      problem = text.error().message;
    } else if (*text) {
      problem = read_origin(**text, deployment);
    }
    if (!problem.empty()) state_.problems.push_back(std::move(problem));
  }

  // The directory that is mounted as / is the booted deployment; a bootloader's default is not asked (R76).
  // The path in ostree= may lead elsewhere after two switches, so of it only what never changes is compared.
  Result<void> find_booted() {
    const auto root = TRY(booted_root(sysroot_));
    if (!root) return {};
    for (std::size_t i = 0; i < state_.deployments.size() && !state_.booted; ++i) {
      if (is(state_.deployments[i].directory, *root)) state_.booted = i;
    }
    for (std::size_t i = 0; i < directories_.size() && !state_.booted; ++i) {
      auto deployment = parse_directory(directories_[i]);
      if (!deployment || !is(directories_[i], *root)) continue;
      describe(*deployment);
      state_.problems.push_back("the booted deployment " + directories_[i] + " has no boot entry");
      state_.deployments.push_back(std::move(*deployment));
      state_.booted = state_.deployments.size() - 1;
    }
    if (!state_.booted) {
      state_.problems.push_back("ostree booted this machine, but its root is none of the deployments");
      return {};
    }
    state_.running = true;
    Deployment& booted = state_.deployments[*state_.booted];
    booted.booted = true;
    return compare_with_cmdline(booted);
  }

  bool is(const std::string& directory, const RootIdentity& root) const {
    struct stat info {};
    return ::stat(path_join(sysroot_, directory).c_str(), &info) == 0 && info.st_dev == root.device &&
           info.st_ino == root.inode;
  }

  Result<void> compare_with_cmdline(const Deployment& booted) {
    const auto line = TRY(read_file("/proc/cmdline", kMaxCmdline, Kind::Boot));
    for (const std::string& argument : boot::split_options(trim(line.value_or("")))) {
      if (!argument.starts_with("ostree=")) continue;
      const auto parts = split(argument, '/');  // ostree=, ostree, boot.N, STATEROOT, BOOTCSUM, SERIAL
      if (parts.size() != 6 || booted.boot_checksum.empty()) return {};
      if (parts[3] != booted.stateroot || parts[4] != booted.boot_checksum) {
        state_.problems.push_back(
            fmt::format("the kernel was started for {} ({}), but {} is mounted as the root", parts[3],
                        printable(parts[4]).substr(0, 12), booted.directory));
      }
      return {};
    }
    return {};
  }

  Result<void> add_staged() {
    const auto staged = read_staged();
    if (!staged) {
      state_.problems.push_back(staged.error().message);
      return {};
    }
    if (!*staged) return {};
    const std::string directory = fmt::format("ostree/deploy/{}/deploy/{}.{}", (*staged)->stateroot,
                                              (*staged)->checksum, (*staged)->serial);
    auto deployment = parse_directory(directory);
    if (!deployment || !exists(path_join(sysroot_, directory))) {
      state_.problems.push_back("the staged deployment " + printable(directory) + " is missing");
      return {};
    }
    deployment->staged = true;
    deployment->locked = (*staged)->locked;
    deployment->boot_checksum = (*staged)->boot_checksum;
    deployment->kargs = (*staged)->kargs;
    std::erase_if(deployment->kargs, [](const std::string& word) { return word.starts_with("ostree="); });
    describe(*deployment);
    state_.deployments.insert(state_.deployments.begin(), std::move(*deployment));
    state_.staged = 0;
    if (state_.booted) ++*state_.booted;
    if (state_.first) ++*state_.first;
    return {};
  }

  // Booted first: the next of the same stateroot. Booted no longer first: the booted one itself, so that a
  // second rollback undoes the first.
  void find_rollback() {
    if (!state_.first) return;
    if (state_.booted && state_.booted != state_.first) {
      state_.rollback = state_.booted;
      state_.rollback_queued = !state_.staged;
      return;
    }
    const std::size_t base = *state_.first;
    for (std::size_t i = base + 1; i < state_.deployments.size(); ++i) {
      if (state_.deployments[i].stateroot != state_.deployments[base].stateroot) continue;
      state_.rollback = i;
      return;
    }
  }

  /// What was good is what a failed trial comes back to; not knowing it forbids a clean-up.
  void find_good() {
    const Deployment* current = state_.current();
    if (!current) return;
    auto good = read_good(state_directory(sysroot_, state_.running, current->stateroot));
    if (!good) {
      state_.problems.push_back(good.error().message);
    } else if (*good) {
      state_.good = (*good)->deployment;
    }
  }

  const std::string& sysroot_;
  HostState state_;
  std::vector<std::string> directories_;
};

}  // namespace

const Deployment* HostState::current() const {
  if (booted) return &deployments[*booted];
  if (first) return &deployments[*first];
  return nullptr;
}

Result<std::vector<std::string>> list_deployment_directories(const std::string& sysroot) {
  std::vector<std::string> out;
  for (const std::string& stateroot : TRY(list_directory(path_join(sysroot, "ostree/deploy")))) {
    const std::string parent = fmt::format("ostree/deploy/{}/deploy", stateroot);
    for (const std::string& name : TRY(list_directory(path_join(sysroot, parent)))) {
      if (parse_directory(path_join(parent, name))) out.push_back(path_join(parent, name));
    }
  }
  return out;
}

Result<HostState> read_host(const World& world) {
  return Reader(world.sysroot).read();
}

Result<std::optional<Deployment>> read_deployment(const World& world, const std::string& directory) {
  auto deployment = parse_directory(directory);
  if (!deployment) return std::optional<Deployment>{};
  read_image_facts(path_join(world.sysroot, "ostree/repo"), *deployment);
  const auto text =
      TRY(read_file(path_join(world.sysroot, directory + ".origin"), kMaxOriginBytes, Kind::Boot));
  if (text) read_origin(*text, *deployment);
  return deployment;
}

}  // namespace rasupd
