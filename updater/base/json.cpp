#include "base/json.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "base/text.hpp"

namespace rasupd {
namespace {

/// Builds the document and notices what nlohmann's own parser lets pass: duplicate keys, depth.
class StrictBuilder : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(value); }
  bool number_unsigned(number_unsigned_t value) override { return put(value); }
  bool number_float(number_float_t value, const string_t&) override { return put(value); }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t&) override { return complain("binary value"); }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& value) override {
    if (open_.back()->contains(value))
      return complain(fmt::format("duplicate key \"{}\"", printable(value, 80)));
    key_ = std::move(value);
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const Json::exception&) override {
    return complain(fmt::format("not valid JSON at byte {}", position));
  }

  Json root;
  std::string problem;

 private:
  bool complain(std::string text) {
    if (problem.empty()) problem = std::move(text);
    return false;
  }
  Json* place(Json value) {
    if (open_.empty()) {
      root = std::move(value);
      return &root;
    }
    Json& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    return &(parent[key_] = std::move(value));
  }
  template <class T>
  bool put(T&& value) {
    place(Json(std::forward<T>(value)));
    return true;
  }
  bool open(Json value) {
    if (open_.size() >= kMaxJsonDepth) return complain("nested too deeply");
    open_.push_back(place(std::move(value)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  std::vector<Json*> open_;
  std::string key_;
};

}  // namespace

Json json_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Result<Json> parse_json(std::string_view text, std::string_view what, Kind kind, std::size_t max_bytes) {
  if (text.size() > max_bytes) {
    return fail(kind, fmt::format("{}: {} bytes, more than the {} allowed", what, text.size(), max_bytes));
  }
  // nlohmann takes a NUL for the end of the document and would not see what follows it.
  if (text.find('\0') != std::string_view::npos) return fail(kind, fmt::format("{}: a NUL byte in it", what));
  if (!is_utf8(text)) return fail(kind, fmt::format("{}: not valid UTF-8", what));
  StrictBuilder builder;
  if (!Json::sax_parse(text.begin(), text.end(), &builder, Json::input_format_t::json, /*strict=*/true)) {
    return fail(kind, fmt::format("{}: {}", what, builder.problem));
  }
  return std::move(builder.root);
}

namespace {

const Json* member(const Json& node, std::string_view key) {
  if (!node.is_object()) return nullptr;
  const auto it = node.find(key);
  return it == node.end() ? nullptr : &*it;
}

}  // namespace

Result<std::string> json_string(const Json& node, std::string_view key, std::string_view what, Kind kind) {
  const Json* value = member(node, key);
  if (!value) return fail(kind, fmt::format("{}: \"{}\" is missing", what, key));
  if (!value->is_string()) return fail(kind, fmt::format("{}: \"{}\" is not a string", what, key));
  return value->get_ref<const std::string&>();
}

Result<std::uint64_t> json_unsigned(const Json& node, std::string_view key, std::string_view what,
                                    Kind kind) {
  const Json* value = member(node, key);
  if (!value) return fail(kind, fmt::format("{}: \"{}\" is missing", what, key));
  if (!value->is_number_unsigned())
    return fail(kind, fmt::format("{}: \"{}\" is not a whole number", what, key));
  return value->get<std::uint64_t>();
}

Result<std::optional<std::string>> json_optional_string(const Json& node, std::string_view key,
                                                        std::string_view what, Kind kind) {
  if (!member(node, key)) return std::optional<std::string>{};
  return std::optional<std::string>(TRY(json_string(node, key, what, kind)));
}

Result<std::map<std::string, std::string>> json_string_map(const Json& node, std::string_view key,
                                                           std::string_view what, Kind kind) {
  std::map<std::string, std::string> out;
  const Json* value = member(node, key);
  if (!value || value->is_null()) return out;
  if (!value->is_object()) return fail(kind, fmt::format("{}: \"{}\" is not an object", what, key));
  for (const auto& [name, text] : value->items()) {
    if (!text.is_string()) return fail(kind, fmt::format("{}: \"{}.{}\" is not a string", what, key, name));
    out.emplace(name, text.get_ref<const std::string&>());
  }
  return out;
}

}  // namespace rasupd
