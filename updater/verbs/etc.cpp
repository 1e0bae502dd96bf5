#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/files.hpp"
#include "base/text.hpp"
#include "image/platform.hpp"
#include "upgrade/upgrade.hpp"
#include "verbs/verb.hpp"

namespace rasupd {
namespace {

/// Names in /etc may hold any byte; JSON holds UTF-8 only.
std::string etc_path(const std::string& path) {
  return "/etc/" + printable(path, 4096);
}

Json changes_json(const std::vector<EtcChange>& changes) {
  Json list = Json::array();
  for (const EtcChange& c : changes) {
    list.push_back({{"code", std::string(1, c.code)},
                    {"path", etc_path(c.path)},
                    {"detail", printable(c.detail, 4096)}});
  }
  return list;
}

Result<Answer> run_diff(const World& world) {
  const HostState host = TRY(read_host(world));
  const Deployment* current = host.current();
  if (!current) return fail(Kind::Boot, world.sysroot + ": there is no deployment");
  const std::string directory = path_join(world.sysroot, current->directory);
  const Fd base = TRY(open_directory(path_join(directory, "usr/etc")));
  const Fd local = TRY(open_directory(path_join(directory, "etc")));
  const auto changes = TRY(diff_etc(base.get(), local.get()));
  Answer answer;
  answer.fields = std::make_shared<Json>(Json{{"changes", changes_json(changes)}});
  for (const EtcChange& c : changes) {
    answer.human += fmt::format("{} {}{}\n", c.code, etc_path(c.path),
                                c.detail.empty() ? "" : "  (" + printable(c.detail, 4096) + ")");
  }
  if (changes.empty()) answer.human = "No local changes: /etc is the image's.\n";
  return answer;
}

/// The commit that `what` names: the staged one, or an image that is pulled (layers stay cached) but not
/// staged.
Result<std::string> commit_to_merge(const World& world, LockedHost& host, const std::string& what) {
  const HostState& state = host.state();
  if (what == "staged" || (what.empty() && state.staged)) {
    if (!state.staged) return fail(Kind::Usage, "nothing is staged", "name an image instead");
    return state.deployments[*state.staged].checksum;
  }
  const Deployment* current = state.current();
  if (!current) return fail(Kind::Boot, world.sysroot + ": there is no deployment");
  if (what.empty() && !current->image) return fail(Kind::Usage, "nothing is tracked: name an image");
  const Reference reference = what.empty() ? *current->image : TRY(reference_argument(what));
  const Settings settings = TRY(load_settings(world.config_root, true));
  Source source = TRY(Source::open(world, reference, settings));
  const std::string architecture =
      current->architecture.empty() ? TRY(host_architecture()) : current->architecture;
  const Candidate candidate =
      TRY(find_candidate(world, settings, source, reference, std::nullopt, architecture));
  Repo repo = TRY(Repo::open(path_join(world.sysroot, "ostree/repo")));
  const ImportPlan plan = TRY(plan_import(repo, candidate.image.manifest, candidate.config.config));
  return TRY(import_candidate(world, settings, source, repo, host, candidate, plan)).commit;
}

Answer tell_plan(const EtcPlan& plan) {
  Answer answer;
  Json conflicts = Json::array(), notes = Json::array();
  for (const EtcConflict& c : plan.conflicts) {
    conflicts.push_back({{"path", etc_path(c.path)},
                         {"local", file_kind_name(c.local)},
                         {"image", file_kind_name(c.vendor)},
                         {"why", c.why}});
    answer.human += fmt::format("conflict {}: here a {}, in the image a {}: {}\n", etc_path(c.path),
                                file_kind_name(c.local), file_kind_name(c.vendor), c.why);
  }
  for (const EtcNote& note : plan.notes) {
    notes.push_back({{"path", etc_path(note.path)}, {"what", note.what}});
    answer.human += fmt::format("note     {}: {}\n", etc_path(note.path), note.what);
  }
  answer.human += fmt::format("{} local changes, {} conflicts, {} notes\n", plan.changes.size(),
                              plan.conflicts.size(), plan.notes.size());
  answer.fields = std::make_shared<Json>(
      Json{{"conflicts", conflicts}, {"notes", notes}, {"changes", changes_json(plan.changes)}});
  return answer;
}

Result<Answer> run_conflicts(const World& world, const std::string& what) {
  LockedHost host = TRY(LockedHost::lock(world));
  const std::string commit = TRY(commit_to_merge(world, host, what));
  return tell_plan(TRY(plan_etc_for(host, commit)));
}

}  // namespace

void add_etc(CLI::App& app, Selected& selected) {
  auto* etc = app.add_subcommand("etc", "What the machine changed in /etc, and what a merge would do");
  etc->fallthrough();
  etc->require_subcommand(1);
  auto* diff = etc->add_subcommand("diff", "Local changes against the image's defaults");
  diff->fallthrough();
  diff->callback([&selected] {
    selected.kind = "EtcDiffResult";
    selected.run = run_diff;
  });
  auto* conflicts =
      etc->add_subcommand("conflicts", "What both sides changed, type clashes, what the merge would do");
  conflicts->fallthrough();
  auto what = std::make_shared<std::string>();
  conflicts->add_option("IMAGE|staged", *what,
                        "An image (pulled, not staged) or what is staged; else what is tracked");
  conflicts->callback([what, &selected] {
    selected.kind = "EtcConflictsResult";
    selected.run = [what](const World& world) { return run_conflicts(world, *what); };
  });
}

}  // namespace rasupd
