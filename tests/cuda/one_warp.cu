// An experiment: the forward pass of lattice_dec for a state of 64 x 64 with one warp a head, every sum inside that warp.
//
// Lane 8 g + c holds the slots [16 g, 16 g + 16) and the columns 4 c + {0..3} and 32 + 4 c + {0..3}: 128 registers. A
// sum over columns goes over the eight lanes of a group and leaves every lane with two of the sixteen slots, so that what
// is computed for a slot is computed once; the others then ask for its results. docs/gpu.md has what it would bring and
// why the package has no such kernel. The formulas are those of python/lattice/triton/rules/lattice.py, the corrected
// lengths among them; arguments as in engine.py, without masks, packed sequences, shrinkage and checkpoints.
//
// Not yet run on hardware.
constexpr int kSize = 64, kSlots = 16, kColumns = 8, kOwn = 2;
constexpr float kEps = 1e-6f;
constexpr unsigned kAll = 0xffffffffu;

using Columns = float[kColumns];
using State = float[kSlots][kColumns];

__device__ __forceinline__ void load_columns(Columns& x, const float* row, int c) {
  const float4 low = *reinterpret_cast<const float4*>(row + 4 * c);
  const float4 high = *reinterpret_cast<const float4*>(row + 32 + 4 * c);
  x[0] = low.x, x[1] = low.y, x[2] = low.z, x[3] = low.w;
  x[4] = high.x, x[5] = high.y, x[6] = high.z, x[7] = high.w;
}

__device__ __forceinline__ void store_columns(float* row, int c, const Columns& x) {
  *reinterpret_cast<float4*>(row + 4 * c) = make_float4(x[0], x[1], x[2], x[3]);
  *reinterpret_cast<float4*>(row + 32 + 4 * c) = make_float4(x[4], x[5], x[6], x[7]);
}

// Sums of x over the lanes that differ in the bits [kLow, 2 kHigh): halves go to and fro, and the lane keeps of N numbers
// those whose index begins with its bits.
template <int N, int kHigh, int kLow>
__device__ __forceinline__ void scatter_sum(float* x, int lane) {
  const bool upper = lane & kHigh;
#pragma unroll
  for (int i = 0; i < N / 2; ++i) {
    const float give = upper ? x[i] : x[i + N / 2], keep = upper ? x[i + N / 2] : x[i];
    x[i] = keep + __shfl_xor_sync(kAll, give, kHigh);
  }
  if constexpr (kHigh > kLow) scatter_sum<N / 2, kHigh / 2, kLow>(x, lane);
}

// What the lane that keeps slot i has for it.
__device__ __forceinline__ float of_slot(const float (&x)[kOwn], int i, int group) {
  return __shfl_sync(kAll, x[i % kOwn], group + i / kOwn);
}

// Sums over the columns of each slot; those of the lane's own two slots come out.
template <typename Term>
__device__ __forceinline__ void over_columns(float (&own)[kOwn], int lane, Term term) {
  float x[kSlots];
#pragma unroll
  for (int i = 0; i < kSlots; ++i) {
    x[i] = 0;
#pragma unroll
    for (int j = 0; j < kColumns; ++j) x[i] = term(i, j, x[i]);
  }
  scatter_sum<kSlots, 4, 1>(x, lane);
#pragma unroll
  for (int i = 0; i < kOwn; ++i) own[i] = x[i];
}

// A and B of a slot, as coefficients() has them, and so that its length does not drift.
struct Coefficients {
  float A, B;
};
__device__ __forceinline__ Coefficients coefficients(float gamma, float mu, float inv, float a, float ch, float r,
                                                     float miss) {
  float B = gamma * ch, Bi = B * inv, A = mu + Bi * a;
  const float beta = rsqrtf(mu * mu + Bi * Bi * r);
  A *= beta, B *= beta, Bi *= beta;
  const float rest = fmaf(-Bi, a, A), low = fmaf(-Bi, a, A - rest), along = Bi * a;
  float lack = fmaf(-2.0f * rest, low, fmaf(-rest, rest, 1.0f));
  lack = fmaf(-Bi * Bi, r, lack);
  lack += miss * (1.0f - A * A + along * along);
  return {fmaf(A, 0.5f * lack, A), fmaf(B, 0.5f * lack, B)};
}

// h = k@Phi - v of the lane's columns, and 1/s, what it misses, and ch of its own slots.
__device__ __forceinline__ void read(const State& S, const float2 k, const Columns& v, int lane, Columns& h,
                                     float (&inv)[kOwn], float (&miss)[kOwn], float (&ch)[kOwn]) {
  float n[kOwn];
  over_columns(n, lane, [&](int i, int j, float sum) { return fmaf(S[i][j], S[i][j], sum); });
#pragma unroll
  for (int i = 0; i < kOwn; ++i) {
    n[i] += kEps * kEps;
    inv[i] = rsqrtf(n[i]);
    const float square = inv[i] * inv[i], lost = fmaf(inv[i], inv[i], -square);
    miss[i] = fmaf(n[i], lost, fmaf(n[i], square, -1.0f));
    ch[i] = (i == 0 ? k.x : k.y) * inv[i];
  }
#pragma unroll
  for (int j = 0; j < kColumns; ++j) h[j] = 0;
#pragma unroll
  for (int i = 0; i < kSlots; ++i) {
    const float weight = of_slot(ch, i, lane & 24);
#pragma unroll
    for (int j = 0; j < kColumns; ++j) h[j] = fmaf(weight, S[i][j], h[j]);
  }
#pragma unroll
  for (int j = 0; j < kColumns; ++j) {
    h[j] += __shfl_xor_sync(kAll, h[j], 8);
    h[j] += __shfl_xor_sync(kAll, h[j], 16);
    h[j] -= v[j];
  }
}

__device__ __forceinline__ void step(State& S, const float2 k, const Columns& v, float gamma, float mu, int lane) {
  float h[kColumns], inv[kOwn], miss[kOwn], ch[kOwn], a[kOwn], along[kOwn], r[kOwn], A[kOwn], B[kOwn];
  read(S, k, v, lane, h, inv, miss, ch);
  over_columns(a, lane, [&](int i, int j, float sum) { return fmaf(S[i][j], h[j], sum); });
#pragma unroll
  for (int i = 0; i < kOwn; ++i) a[i] *= inv[i], along[i] = a[i] * inv[i];
  float part[kSlots];
#pragma unroll
  for (int i = 0; i < kSlots; ++i) part[i] = of_slot(along, i, lane & 24);
  over_columns(r, lane, [&](int i, int j, float sum) {
    const float u = fmaf(-part[i], S[i][j], h[j]);
    return fmaf(u, u, sum);
  });
#pragma unroll
  for (int i = 0; i < kOwn; ++i) {
    const float e = a[i] * kEps * inv[i];
    const Coefficients c = coefficients(gamma, mu, inv[i], a[i], ch[i], r[i] + e * e, miss[i]);
    A[i] = c.A, B[i] = c.B;
  }
#pragma unroll
  for (int i = 0; i < kSlots; ++i) {
    const float scale = of_slot(A, i, lane & 24), write = of_slot(B, i, lane & 24);
#pragma unroll
    for (int j = 0; j < kColumns; ++j) S[i][j] = fmaf(-write, h[j], scale * S[i][j]);
  }
}

// y = q@S: the sum over slots leaves every lane with two of its eight columns.
__device__ __forceinline__ void read_out(const State& S, const float* q, float* y, int lane, int c, int g) {
  Columns sum = {0, 0, 0, 0, 0, 0, 0, 0};
#pragma unroll
  for (int i = 0; i < kSlots; i += 4) {
    const float4 w = *reinterpret_cast<const float4*>(q + kSlots * g + i);
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      sum[j] = fmaf(w.x, S[i][j], sum[j]);
      sum[j] = fmaf(w.y, S[i + 1][j], sum[j]);
      sum[j] = fmaf(w.z, S[i + 2][j], sum[j]);
      sum[j] = fmaf(w.w, S[i + 3][j], sum[j]);
    }
  }
  scatter_sum<kColumns, 16, 8>(sum, lane);
  // Bit 16 of the lane chose the lower or upper four columns, bit 8 two of them.
  *reinterpret_cast<float2*>(y + (lane & 16) * 2 + 4 * c + (lane & 8) / 4) = make_float2(sum[0], sum[1]);
}

extern "C" __global__ void __launch_bounds__(32)
    one_warp(const float* q, const float* k, const float* v, const float* gamma, const float* mu, const float* state,
             float* y, float* state_out, int T, int H) {
  const int lane = threadIdx.x, c = lane & 7, g = lane >> 3;
  const long long n = blockIdx.x / H, head = blockIdx.x % H;
  const float* own = state + (n * H + head) * kSize * kSize;
  State S;
#pragma unroll
  for (int i = 0; i < kSlots; ++i) load_columns(S[i], own + (kSlots * g + i) * kSize, c);
  long long at = n * T * H + head;
  const int keeps = kSlots * g + kOwn * c;
  float2 kt = *reinterpret_cast<const float2*>(k + at * kSize + keeps);
  Columns vt;
  load_columns(vt, v + at * kSize, c);
  float gt = gamma[at], mt = mu[at];
  for (int t = 0; t < T; ++t) {
    // The next token is fetched while this one is computed; the last token is its own next.
    const long long ahead = t + 1 < T ? at + H : at;
    const float2 k2 = *reinterpret_cast<const float2*>(k + ahead * kSize + keeps);
    Columns v2;
    load_columns(v2, v + ahead * kSize, c);
    const float g2 = gamma[ahead], m2 = mu[ahead];
    step(S, kt, vt, gt, mt, lane);
    read_out(S, q + at * kSize, y + at * kSize, lane, c, g);
    at = ahead, kt = k2, gt = g2, mt = m2;
#pragma unroll
    for (int j = 0; j < kColumns; ++j) vt[j] = v2[j];
  }
  float* out = state_out + (n * H + head) * kSize * kSize;
#pragma unroll
  for (int i = 0; i < kSlots; ++i) store_columns(out + (kSlots * g + i) * kSize, c, S[i]);
}
