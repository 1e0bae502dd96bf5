// The only file of this room that needs a Source.
#include "import/pull.hpp"
#include "source/source.hpp"

namespace rasupd {

Result<Imported> import_image(const World& world, Repo& repo, Source& source, const ImageDocuments& image,
                              const ImportPlan& plan, const ImportOptions& options) {
  const Fetch fetch = [&source](const Descriptor& layer) { return source.blob(layer); };
  return import_with(world, repo, fetch, image, plan, options);
}

}  // namespace rasupd
