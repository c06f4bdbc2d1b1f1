// How the chunk kernels divide a sequence: into chunks, whose tokens share a frozen state; into segments,
// each of which begins at a checkpoint for the backward pass; and into tiles, the tokens of one product of
// matrices.
//
// Every chunk begins a segment or lies inside one: a long chunk is several segments, and a segment holds
// several short chunks.
#ifndef LATTICE_KERNELS_CHUNK_PLAN_H_
#define LATTICE_KERNELS_CHUNK_PLAN_H_

#include <algorithm>
#include <cstdint>

namespace lattice::kernels {

struct ChunkPlan {
  static constexpr int64_t kSegment = 64;       // tokens of a segment, at most
  static constexpr int64_t kSegmentTiles = 16;  // tiles of a segment, at most
  static constexpr int64_t kTile = 16;          // tokens of a tile, at most

  int64_t chunk;  // tokens of a chunk

  // Whether a chunk is at least one segment.
  bool Long() const { return chunk >= kSegment; }
  // Tokens from one segment of short chunks to the next.
  int64_t Step() const { return chunk * std::clamp<int64_t>(kSegment / chunk, 1, kSegmentTiles); }
  // Segments of a long chunk.
  int64_t PerChunk() const { return (chunk - 1) / kSegment + 1; }

  // Checkpoints of a sequence: one before every segment but the first.
  template <class Int>
  Int Checkpoints(const Int& length) const {
    if (!Long()) return (length - 1) / Step();
    return length / chunk * PerChunk() + (length % chunk + (kSegment - 1)) / kSegment - 1;
  }
  // An upper bound of the checkpoints of any sequences of `total` tokens together.
  template <class Int>
  Int MaxCheckpoints(const Int& total) const {
    return Long() ? total / kSegment + total / chunk : total / Step();
  }

  int64_t Segments(int64_t length) const { return length > 0 ? Checkpoints(length) + 1 : 0; }
  int64_t Begin(int64_t segment) const {
    if (!Long()) return segment * Step();
    return segment / PerChunk() * chunk + segment % PerChunk() * kSegment;
  }
  // The segment in which the chunk of `segment` begins.
  int64_t ChunkSegment(int64_t segment) const { return Long() ? segment / PerChunk() * PerChunk() : segment; }
};

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_CHUNK_PLAN_H_
