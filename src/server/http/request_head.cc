// A strict parser of HTTP/1.1 request heads. It is a pure function on bytes, which can be fuzzed alone.
#include "server/http/request_head.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/ascii.h"

namespace lattice::server::http {
namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;

constexpr BadRequest kNoRequest = {400, "this is not a request of HTTP/1.1 that can be read"};
constexpr BadRequest kBadLine = {
    400, "a line of the head does not end with CR LF, or is continued on the next one"};
constexpr BadRequest kBadField = {400,
                                  "a header of the request has no proper name, or control characters in it"};
constexpr BadRequest kRepeated = {400, "a header that may come once is there twice"};
constexpr BadRequest kNoHost = {400, "the Host header is missing"};
constexpr BadRequest kBadEscape = {400, "the path has a % without two hexadecimal digits behind it"};
constexpr BadRequest kLongHead = {431, "the header is longer than this server accepts"};
constexpr BadRequest kLongPath = {414, "the path or the query is too long"};
constexpr BadRequest kLength = {
    400, "the length of the body is not clear: send one Content-Length, or Transfer-Encoding: chunked"};

constexpr std::string_view kEnd = "\r\n\r\n";
// Fields that may occur once: two parsers could resolve a repetition differently.
constexpr std::array<std::string_view, 6> kSingle = {"host",         "content-length", "transfer-encoding",
                                                     "content-type", "authorization",  "origin"};

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
std::string Lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](char c) { return Lower(c); });
  return out;
}

bool IsToken(std::string_view text) {
  constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return IsDigit(c) || IsLetter(c) || kOthers.find(c) != std::string_view::npos;
  });
}

bool IsFieldValue(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte == '\t' || (byte >= ' ' && byte != 0x7f);
  });
}

bool IsVisible(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~' && c != '#'; });
}

int HexDigit(char c) {
  if (IsDigit(c)) return c - '0';
  const char lower = Lower(c);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

std::optional<std::string> Decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size() || HexDigit(text[i + 1]) < 0 || HexDigit(text[i + 2]) < 0) return std::nullopt;
    out += static_cast<char>(16 * HexDigit(text[i + 1]) + HexDigit(text[i + 2]));
    i += 2;
  }
  return out;
}

// Removes the part before the first `mark`, and the mark, from `text` and returns it; everything when there
// is no mark.
std::string_view Cut(std::string_view& text, std::string_view mark) {
  const size_t end = text.find(mark);
  const std::string_view before = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + mark.size());
  return before;
}

// Whether CR and LF only occur as pairs. The last byte may be a CR whose LF has not been received yet.
bool LinesAreClean(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n' && (i == 0 || text[i - 1] != '\r')) return false;
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] != '\n') return false;
  }
  return true;
}

std::optional<BadRequest> ReadTarget(std::string_view target, const HeadLimits& limits, RequestHead& out) {
  if (!target.starts_with('/') || !IsVisible(target)) return kNoRequest;
  if (target.size() > limits.target_bytes) return kLongPath;
  const std::string_view path = Cut(target, "?");
  if (path.size() > limits.path_bytes) return kLongPath;
  std::optional<std::string> decoded = Decoded(path);
  if (!decoded) return kBadEscape;
  out.path = *std::move(decoded);
  while (!target.empty()) {
    std::string_view value = Cut(target, "&");
    const std::optional<std::string> name = Decoded(Cut(value, "=")), meaning = Decoded(value);
    if (!name || !meaning) return kBadEscape;
    out.query.emplace_back(*name, *meaning);
  }
  return std::nullopt;
}

std::optional<BadRequest> ReadRequestLine(std::string_view line, const HeadLimits& limits, RequestHead& out) {
  constexpr size_t kLongestMethod = 16;
  const std::string_view method = Cut(line, " "), target = Cut(line, " ");
  if (!IsToken(method) || method.size() > kLongestMethod) return kNoRequest;
  if (line != "HTTP/1.1" && line != "HTTP/1.0") return kNoRequest;
  out.method = method;
  out.minor_version = line.back() - '0';
  return ReadTarget(target, limits, out);
}

std::optional<BadRequest> ReadField(std::string_view line, RequestHead& out) {
  if (line.starts_with(' ') || line.starts_with('\t')) return kBadLine;
  if (line.find(':') == std::string_view::npos) return kBadField;
  const std::string_view name = Cut(line, ":");
  if (!IsToken(name) || !IsFieldValue(line)) return kBadField;
  const size_t begin = line.find_first_not_of(" \t"), end = line.find_last_not_of(" \t");
  const std::string_view value = begin == std::string_view::npos ? "" : line.substr(begin, end - begin + 1);
  std::string lower = Lower(name);
  const bool single = std::find(kSingle.begin(), kSingle.end(), lower) != kSingle.end();
  if (single && out.Field(lower) != nullptr)
    return lower == "content-length" || lower == "transfer-encoding" ? kLength : kRepeated;
  out.fields.emplace_back(std::move(lower), value);
  return std::nullopt;
}

std::optional<BadRequest> ReadBodyLength(RequestHead& out) {
  const std::string* length = out.Field("content-length");
  const std::string* coding = out.Field("transfer-encoding");
  if (coding != nullptr) {
    out.chunked = true;
    const bool clear = length == nullptr && Lower(*coding) == "chunked" && out.minor_version == 1;
    return clear ? std::nullopt : std::optional(kLength);
  }
  if (length == nullptr) return std::nullopt;
  constexpr size_t kMostDigits = 18;  // below 2^63
  if (length->empty() || length->size() > kMostDigits ||
      !std::all_of(length->begin(), length->end(), IsDigit))
    return kLength;
  for (const char digit : *length) out.content_length = 10 * out.content_length + (digit - '0');
  return std::nullopt;
}

const std::string* Find(const Fields& fields, std::string_view name) {
  const auto found =
      std::find_if(fields.begin(), fields.end(), [&](const auto& at) { return at.first == name; });
  return found == fields.end() ? nullptr : &found->second;
}

}  // namespace

const std::string* RequestHead::Field(std::string_view lower_case_name) const {
  return Find(fields, lower_case_name);
}

const std::string* RequestHead::Query(std::string_view name) const { return Find(query, name); }

bool RequestHead::KeepAlive() const {
  const std::string* connection = Field("connection");
  const std::string options = connection == nullptr ? "" : Lower(*connection);
  if (minor_version == 0) return options.find("keep-alive") != std::string::npos;
  return options.find("close") == std::string::npos;
}

std::variant<std::monostate, ParsedHead, BadRequest> ParseHead(std::string_view bytes,
                                                               const HeadLimits& limits) {
  const size_t end = bytes.find(kEnd);
  const std::string_view known = end == std::string_view::npos ? bytes : bytes.substr(0, end + kEnd.size());
  if (!LinesAreClean(known)) return kBadLine;
  if (known.size() > limits.bytes) return kLongHead;
  if (end == std::string_view::npos) return std::monostate();

  ParsedHead out;
  out.bytes = known.size();
  std::string_view lines = known.substr(0, end);
  if (const auto bad = ReadRequestLine(Cut(lines, "\r\n"), limits, out.head)) return *bad;
  while (!lines.empty()) {
    if (out.head.fields.size() >= limits.fields) return kLongHead;
    if (const auto bad = ReadField(Cut(lines, "\r\n"), out.head)) return *bad;
  }
  if (const auto bad = ReadBodyLength(out.head)) return *bad;
  if (out.head.minor_version == 1 && out.head.Field("host") == nullptr) return kNoHost;
  return out;
}

}  // namespace lattice::server::http
