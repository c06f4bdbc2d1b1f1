// Sessions to bytes and back. Everything is checked on the way back: the seal first, then each length.
#include "server/engine/session_record.h"

#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>

#include "base/error.h"
#include "io/hash.h"
#include "io/json.h"

namespace lattice::server {
namespace {

constexpr std::string_view kFirstLine = "lattice stored session 1\n";
constexpr size_t kSealSize = 64, kHeadSize = kFirstLine.size() + kSealSize + 2;
constexpr char kPlain = '-', kZstd = 'z';
constexpr int kZstdLevel = 1;
// The largest session that is decompressed.
constexpr unsigned long long kMostBytes = 1ull << 30;

template <typename T>
void AppendBytes(const std::vector<T>& values, std::string& out) {
  out.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

std::string Compressed(const std::string& text) {
  std::string out(::ZSTD_compressBound(text.size()), '\0');
  const size_t size = ::ZSTD_compress(out.data(), out.size(), text.data(), text.size(), kZstdLevel);
  Check(::ZSTD_isError(size) == 0, "[session] zstd: ", ::ZSTD_getErrorName(size));
  out.resize(size);
  return out;
}

std::string Decompressed(std::string_view bytes) {
  const unsigned long long size = ::ZSTD_getFrameContentSize(bytes.data(), bytes.size());
  Check(size <= kMostBytes, "[session] the stored session is damaged: it has no size, or too large a one");
  std::string out(size, '\0');
  const size_t done = ::ZSTD_decompress(out.data(), out.size(), bytes.data(), bytes.size());
  Check(::ZSTD_isError(done) == 0 && done == size, "[session] the stored session is damaged");
  return out;
}

bool SameBytes(std::string_view a, std::string_view b) {
  unsigned different = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    different |= static_cast<unsigned char>(a[i] ^ b[i]);
  return different == 0;
}

// Takes the parts off the payload one after the other.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : left_(text) {}

  std::string_view Take(int64_t bytes) {
    Check(bytes >= 0 && static_cast<uint64_t>(bytes) <= left_.size(),
          "[session] the stored session is damaged: it announces more than it has");
    const std::string_view taken = left_.substr(0, static_cast<size_t>(bytes));
    left_.remove_prefix(taken.size());
    return taken;
  }
  std::string_view TakeLine() {
    const size_t end = left_.find('\n');
    Check(end != std::string_view::npos, "[session] the stored session is damaged: it has no header");
    return Take(static_cast<int64_t>(end) + 1);
  }
  template <typename T>
  std::vector<T> TakeValues(int64_t count) {
    Check(count >= 0 && count <= (int64_t{1} << 40), "[session] the stored session is damaged");
    const std::string_view bytes = Take(count * static_cast<int64_t>(sizeof(T)));
    std::vector<T> out(static_cast<size_t>(count));
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
  }
  bool empty() const { return left_.empty(); }

 private:
  std::string_view left_;
};

nlohmann::json AppliedJson(const std::vector<AppliedRequest>& all) {
  nlohmann::json out = nlohmann::json::array();
  for (const AppliedRequest& one : all)
    out.push_back(
        {{"key", one.key}, {"request", one.request}, {"answer", one.answer}, {"position", one.position}});
  return out;
}

std::vector<AppliedRequest> AppliedOf(const nlohmann::json& list, const std::string& source) {
  std::vector<AppliedRequest> out;
  for (const nlohmann::json& one : list)
    out.push_back(
        {io::GetJson<std::string>(one, "key", source), io::GetJson<std::string>(one, "request", source),
         io::GetJson<std::string>(one, "answer", source), io::GetJson<int64_t>(one, "position", source)});
  return out;
}

// A line of JSON, and the tokens, logits and states that it announces.
void AppendPayload(const SessionRecord& record, const std::string& id, const std::string& stamp,
                   std::string& out) {
  const Conversation& of = record.conversation;
  const std::string state = of.session.Serialize();
  std::string base;
  if (!of.base_state.empty()) base = runtime::Session(of.session.shared_model(), of.base_state).Serialize();
  const nlohmann::json header = {{"id", id},
                                 {"stamp", stamp},
                                 {"owner", record.owner},
                                 {"position", of.position()},
                                 {"base_position", of.base},
                                 {"loaded", of.loaded},
                                 {"tokens", of.tokens.size()},
                                 {"logits", of.logits.size()},
                                 {"state", state.size()},
                                 {"base", base.size()},
                                 {"applied", AppliedJson(record.applied)}};
  const std::string line = header.dump() + "\n";
  out.reserve(out.size() + line.size() + 4 * (of.tokens.size() + of.logits.size()) + state.size() +
              base.size());
  out.append(line);
  AppendBytes(of.tokens, out);
  AppendBytes(of.logits, out);
  out.append(state).append(base);
}

}  // namespace

int64_t SessionRecord::Bytes() const {
  int64_t bytes = conversation.Bytes();
  for (const AppliedRequest& one : applied) bytes += 256 + static_cast<int64_t>(one.answer.size());
  return bytes;
}

std::string EncodeRecord(const SessionRecord& record, const std::string& id, const std::string& stamp,
                         const RecordFormat& format) {
  // A session of 110m is 2.7 MB, so it is put together in place instead of being copied from string to string.
  std::string out(kFirstLine);
  out.append(kSealSize, '0').append(1, '\n').append(1, format.compress ? kZstd : kPlain);
  if (format.compress) {
    std::string payload;
    AppendPayload(record, id, stamp, payload);
    out.append(Compressed(payload));
  } else {
    AppendPayload(record, id, stamp, out);
  }
  const std::string_view sealed = std::string_view(out).substr(kFirstLine.size() + kSealSize);
  out.replace(kFirstLine.size(), kSealSize, io::HmacSha256Hex(format.key, sealed));
  return out;
}

SessionRecord DecodeRecord(const std::shared_ptr<const runtime::Model>& model, std::string_view bytes,
                           const std::string& id, const std::string& stamp, const RecordFormat& format) {
  Check(bytes.size() > kHeadSize && bytes.starts_with(kFirstLine), "[session] what the store has for ", id,
        " is no session");
  const std::string_view sealed = bytes.substr(kFirstLine.size() + kSealSize);
  Check(SameBytes(bytes.substr(kFirstLine.size(), kSealSize), io::HmacSha256Hex(format.key, sealed)),
        "[session] what the store has for ", id,
        " is damaged, or was stored by a server with another --state-key-file");
  const std::string_view rest = sealed.substr(2);
  std::string unpacked;
  if (sealed[1] == kZstd) unpacked = Decompressed(rest);
  Cursor cursor(sealed[1] == kZstd ? std::string_view(unpacked) : rest);
  const std::string source = "the stored session " + id;
  const nlohmann::json header = io::ParseJson(cursor.TakeLine(), source);
  const auto number = [&](const char* name) { return io::GetJson<int64_t>(header, name, source); };
  Check(io::GetJson<std::string>(header, "id", source) == id &&
            io::GetJson<std::string>(header, "stamp", source) == stamp,
        "[session] the store has the value of another session, or of another time, for ", id);
  auto tokens = cursor.TakeValues<int32_t>(number("tokens"));
  auto logits = cursor.TakeValues<float>(number("logits"));
  const std::string_view state = cursor.Take(number("state")), base = cursor.Take(number("base"));
  Check(cursor.empty(), "[session] ", source, " is damaged: it has more than it announces");
  SessionRecord out(Conversation(runtime::Session::Deserialize(model, state, source)));
  Conversation& of = out.conversation;
  of.tokens = std::move(tokens);
  of.logits = std::move(logits);
  of.loaded = io::GetJson<bool>(header, "loaded", source);
  of.base = number("base_position");
  if (!base.empty()) of.base_state = runtime::Session::Deserialize(model, base, source).Checkpoint();
  Check(of.position() == number("position"), "[session] ", source, " is damaged: positions differ");
  out.owner = io::GetJson<std::string>(header, "owner", source);
  out.applied = AppliedOf(header.at("applied"), source);
  return out;
}

}  // namespace lattice::server
