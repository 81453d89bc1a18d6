import { useData } from 'vitepress';
import { defineComponent, h, onMounted, ref, useId, watch } from 'vue';

/**
 * A picture drawn by Mermaid in the browser, in the colours of the site. Readers without JavaScript, and search
 * engines, get its text. The existing plugins are under the GPL, or without a release since 2024.
 */
export const MermaidDiagram = defineComponent({
  props: { source: { type: String, required: true } },
  setup(props) {
    const { isDark } = useData();
    const id = `mermaid-${useId()}`;
    const svg = ref('');
    const source = decodeURIComponent(props.source);

    async function draw() {
      // The build that comes bundled: to bundle its 2,000 modules takes longer than all pages.
      const { default: mermaid } = await import('mermaid/dist/mermaid.esm.min.mjs');
      // Labels as text of the picture: the site has styles for paragraphs, which labels in HTML are.
      mermaid.initialize({ startOnLoad: false, htmlLabels: false, theme: isDark.value ? 'dark' : 'default' });
      ({ svg: svg.value } = await mermaid.render(id, source));
    }
    onMounted(draw);
    watch(isDark, draw);

    return () =>
      svg.value ? h('div', { class: 'mermaid', innerHTML: svg.value }) : h('pre', { class: 'mermaid' }, source);
  },
});
