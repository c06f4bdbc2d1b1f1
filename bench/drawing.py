"""What the benches' pictures are drawn with."""

from html import escape

INK, MUTED, GRID = "#1f2933", "#5f6c7b", "#e4e7eb"

# A memory has the colour that it has in the figures of the program (src/plot/svg_parts.cc).
MEMORY = {"lattice_dec": "#0b62c4", "deltanet": "#c2410c", "softmax_attention": "#1f2937"}


def text(x, y, words, *, size=12, anchor="start", color=INK, weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{color}" '
            f'font-weight="{weight}">{escape(str(words))}</text>')


def line(x1, y1, x2, y2, color=GRID, width=1):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{color}" stroke-width="{width}"/>'


def curve(points, color, *, dashed=False):
    """A line through points of the picture, with dots unless it is dashed."""
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dash = ' stroke-dasharray="6 4"' if dashed else ""
    dots = [] if dashed else [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{color}"/>' for x, y in points]
    return [f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"{dash}/>', *dots]


def document(width, height, parts):
    body = "\n".join(parts)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height:.0f}" '
            f'viewBox="0 0 {width} {height:.0f}" font-family="Helvetica, Arial, sans-serif">\n'
            f'<rect width="100%" height="100%" fill="#ffffff"/>\n{body}\n</svg>\n')
