#pragma once
// What manifest, index and config have in common as JSON: members by exact name, descriptors. Private to
// this room. Every error is Untrusted.

#include <initializer_list>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "image/manifest.hpp"

namespace rasupd {

/// Go's decoders take "Layers" (and "layerſ") for "layers"; ours does not, so such a member is two documents
/// in one. Error when `node` has a member that equals one of `names` in all but case.
Result<void> check_no_folded_names(const Json& node, std::initializer_list<std::string_view> names,
                                   std::string_view what);
/// Member `key`, an array; `what` is the document.
Result<const Json*> json_array(const Json& node, std::string_view key, std::string_view what);
Result<Descriptor> parse_descriptor(const Json& node, std::string_view what);

}  // namespace rasupd
