#pragma once
// Pulling: the missing layers of a plan, several at a time. Each verified layer is published with its ref as
// soon as it is whole, so that a cut loses only what was under way.

#include <functional>
#include <string>
#include <vector>

#include "base/stream.hpp"
#include "import/import.hpp"

namespace rasupd {

/// Opens a layer's blob; the reader checks digest and size. Called from several threads.
using Fetch = std::function<Result<Reader>(const Descriptor&)>;

/// The commit of every layer of the plan, in its order. The first error wins and stops the others.
Result<std::vector<std::string>> pull_layers(const World& world, const Repo& repo, const Fetch& fetch,
                                             const ImportPlan& plan, const ImportOptions& options);

/// pull_layers(), merge, commit and image ref: import_image() without a Source.
Result<Imported> import_with(const World& world, Repo& repo, const Fetch& fetch, const ImageDocuments& image,
                             const ImportPlan& plan, const ImportOptions& options);

}  // namespace rasupd
