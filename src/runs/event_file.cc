// Writes TensorBoard event files: protocol buffer messages in checksummed records.
#include "runs/event_file.h"

#include <unistd.h>

#include <array>
#include <bit>
#include <chrono>

#include "base/error.h"
#include "io/directory.h"

namespace lattice::runs {
namespace {

constexpr std::array<uint32_t, 256> MakeTable() {
  std::array<uint32_t, 256> table = {};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0x82f63b78u : 0);
    table[i] = value;
  }
  return table;
}

// A CRC that is stored with its data is masked, because the CRC of data with an embedded CRC is a poor check.
uint32_t Masked(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

void AppendFixed(std::string& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
}

void AppendVarint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

// Fields of a message: the number with the wire type (0 varint, 1 eight bytes, 2 length-delimited, 5 four
// bytes), then the value.
void AppendText(std::string& out, int field, std::string_view text) {
  AppendVarint(out, static_cast<uint64_t>(field << 3 | 2));
  AppendVarint(out, text.size());
  out += text;
}
void AppendInteger(std::string& out, int field, int64_t value) {
  AppendVarint(out, static_cast<uint64_t>(field << 3));
  AppendVarint(out, static_cast<uint64_t>(value));
}
void AppendDouble(std::string& out, int field, double value) {
  AppendVarint(out, static_cast<uint64_t>(field << 3 | 1));
  AppendFixed(out, std::bit_cast<uint64_t>(value), 8);
}
void AppendFloat(std::string& out, int field, float value) {
  AppendVarint(out, static_cast<uint64_t>(field << 3 | 5));
  AppendFixed(out, std::bit_cast<uint32_t>(value), 4);
}

double WallTime() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Event: wall_time = 1, step = 2, file_version = 3, summary = 5, session_log = 7.
std::string Event(int64_t step) {
  std::string event;
  AppendDouble(event, 1, WallTime());
  if (step != 0) AppendInteger(event, 2, step);
  return event;
}

}  // namespace

uint32_t Crc32c(std::string_view data) {
  static constexpr std::array<uint32_t, 256> kTable = MakeTable();
  uint32_t crc = ~0u;
  for (const char c : data) crc = kTable[(crc ^ static_cast<uint8_t>(c)) & 0xff] ^ (crc >> 8);
  return ~crc;
}

EventFile::EventFile(const std::filesystem::path& directory, int64_t last_step) {
  // TensorBoard reads the files of a directory in the order of their names.
  const auto now = static_cast<int64_t>(WallTime());
  try {
    io::MakeDirectories(directory);
    file_.emplace(directory / StrCat("events.out.tfevents.", now, ".lattice.", ::getpid()));
  } catch (const Error&) {
    return;
  }
  std::string first = Event(0);
  AppendText(first, 3, "brain.Event:2");
  Record(first);
  Restart(last_step);
}

void EventFile::Restart(int64_t last_step) {
  std::string start = Event(last_step + 1), session;
  AppendInteger(session, 1, 1);  // SessionLog.status = START: drop what is at this step or after
  AppendText(start, 7, session);
  Record(start);
}

void EventFile::Record(std::string_view event) {
  std::string length, out;
  AppendFixed(length, event.size(), 8);
  out = length;
  AppendFixed(out, Masked(Crc32c(length)), 4);
  out += event;
  AppendFixed(out, Masked(Crc32c(event)), 4);
  if (file_) file_->Append(out);
}

void EventFile::Write(int64_t step, const std::vector<std::pair<std::string, double>>& scalars) {
  // Summary: value = 1 { tag = 1, simple_value = 2 }.
  std::string summary;
  for (const auto& [tag, value] : scalars) {
    std::string entry;
    AppendText(entry, 1, tag);
    AppendFloat(entry, 2, static_cast<float>(value));
    AppendText(summary, 1, entry);
  }
  std::string event = Event(step);
  AppendText(event, 5, summary);
  Record(event);
}

}  // namespace lattice::runs
