#pragma once
// For the fence's own .cpp files: GError as an Error of the house, owners of GLib objects. Knows GLib's types
// by name only, so that this header stays free of C libraries.

#include <memory>
#include <string_view>

#include "base/handle.hpp"
#include "base/result.hpp"

typedef struct _GError GError;
typedef struct _GVariant GVariant;
typedef struct OstreeRepo OstreeRepo;
extern "C" void g_object_unref(void* object);
extern "C" void g_variant_unref(GVariant* value);

namespace rasupd {

struct GUnref {
  template <class T>
  void operator()(T* object) const noexcept {
    g_object_unref(object);
  }
};
template <class T>
using Object = std::unique_ptr<T, GUnref>;
using Variant = std::unique_ptr<GVariant, Deleter<g_variant_unref>>;

/// Takes `error` over. G_IO_ERROR_NO_SPACE and libostree's min-free-space are NoSpace, a cancelled call is
/// Cancelled, everything else of `kind`.
tl::unexpected<Error> fail_gerror(GError* error, std::string_view what, Kind kind = Kind::Failed);

}  // namespace rasupd
