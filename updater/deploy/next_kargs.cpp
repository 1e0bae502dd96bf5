#include <algorithm>

#include "base/files.hpp"
#include "deploy/image_facts.hpp"
#include "deploy/kargs.hpp"
#include "deploy/locked_host_body.hpp"
#include "deploy/scratch.hpp"
#include "image/platform.hpp"

namespace rasupd {
namespace {

/// The image's own architecture, which on another machine's disk is not the host's.
Result<std::string> architecture_of(const LockedHost::Body& body, const std::string& commit) {
  const auto facts = TRY(read_commit_facts(body.path("ostree/repo"), commit));
  std::string architecture = facts ? config_architecture(facts->config) : "";
  if (!architecture.empty()) return architecture;
  return host_architecture();
}

Result<std::vector<std::string>> kargs_of_commit(LockedHost::Body& body, const std::string& commit,
                                                 const std::string& architecture) {
  const Scratch scratch = TRY(Scratch::make(body.world.sysroot));
  for (const char* owner : {"bootc", "rasupd"}) {
    const std::string parent = std::string("usr/lib/") + owner;
    TRY(make_directories(path_join(scratch.path(), parent)));
    TRY(body.sysroot.checkout(commit, parent + "/kargs.d", path_join(scratch.path(), parent + "/kargs.d")));
  }
  return read_kargs_d(scratch.path(), architecture);
}

std::string_view key_of(std::string_view argument) {
  return argument.substr(0, argument.find('='));
}

bool has_key(const std::vector<std::string>& arguments, std::string_view key) {
  return std::any_of(arguments.begin(), arguments.end(),
                     [&](const std::string& a) { return key_of(a) == key; });
}

}  // namespace

Result<std::vector<std::string>> kargs_for(LockedHost::Body& body, const NewDeployment& what) {
  const std::string architecture = TRY(architecture_of(body, what.commit));
  const auto of_new = TRY(kargs_of_commit(body, what.commit, architecture));
  std::vector<std::string> result = of_new;
  if (const Deployment* current = body.state.current()) {
    // What the machine runs today must not be able to forbid every tomorrow.
    auto of_old = read_kargs_d(body.path(current->directory), architecture);
    if (!of_old) body.world.progress.note("warning: the current image's kargs.d: " + of_old.error().message);
    result = merge_kargs(current->kargs, of_old.value_or(std::vector<std::string>{}), of_new);
  }
  for (const std::string& argument : what.add_kargs) {
    if (std::find(result.begin(), result.end(), argument) == result.end()) result.push_back(argument);
  }
  for (const std::string& argument : what.ensure_kargs) {
    if (!has_key(result, key_of(argument))) result.push_back(argument);
  }
  return result;
}

}  // namespace rasupd
