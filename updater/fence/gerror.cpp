#include "fence/gerror.hpp"

#include <gio/gio.h>

#include <cstring>

#include "base/text.hpp"

namespace rasupd {

tl::unexpected<Error> fail_gerror(GError* error, std::string_view what, Kind kind) {
  if (!error) return fail(kind, std::string(what) + ": failed without a reason");
  if (g_error_matches(error, G_IO_ERROR, G_IO_ERROR_NO_SPACE) ||
      std::strstr(error->message, "No space left") || std::strstr(error->message, "min-free-space")) {
    kind = Kind::NoSpace;
  } else if (g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED)) {
    kind = Kind::Cancelled;
  }
  std::string message = std::string(what) + ": " + printable(error->message);
  g_error_free(error);
  return fail(kind, std::move(message));
}

}  // namespace rasupd
